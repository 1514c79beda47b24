import { oneLine } from '@continuo/shared/error-details.ts';
import type { ModelRunner } from '../model-runner.ts';
import type { AllocateLogits } from '../runner/runner-options.ts';
import { SingleRowRunner } from '../runner/single-row-runner.ts';
import { FallbackRunner } from './fallback-runner.ts';

/** Rounding of logits on a device, as a fraction of their range. More is a different result. */
const DEVICE_ROUNDING = 0.03;
/** Greedy tokens that the devices must agree on. */
const COMPARED_TOKENS = 8;
/** Runs at first compile what they need, so only later ones are timed. */
const WARM_UP = 3;

const NEVER = new AbortController().signal;

/** Where a model of the page runs. */
export interface WebDevice {
  readonly kind: 'webgpu' | 'wasm';
  /** Why WebAssembly runs it though WebGPU was tried; null = it was not, or it runs. */
  readonly reason: string | null;
}

interface Trial {
  /** Null = the device has passed. */
  readonly fault: string | null;
  /** Milliseconds of a decode run; 0 if the device has not passed. */
  readonly deviceMs: number;
  readonly processorMs: number;
}

/**
 * Chooses the runner of a page. WebGPU is chosen if it passes a self-test against WebAssembly and is faster.
 * The other runner is disposed, but WebAssembly takes over if the device fails later.
 */
export async function chooseRunner(
  processor: ModelRunner,
  openDevice: () => Promise<ModelRunner>,
  options: {
    /** Text of the self-test, of at least one and a half chunks. */
    readonly prompt: Int32Array;
    /** Whether WebGPU is chosen also if it is slower. */
    readonly forced: boolean;
    readonly allocateLogits: AllocateLogits;
    now(): number;
    /** Called if WebAssembly takes over. */
    onChange(device: WebDevice): void;
  },
): Promise<{ readonly runner: ModelRunner; readonly device: WebDevice }> {
  const { prompt, forced, allocateLogits, now, onChange } = options;
  const without = (reason: string) => ({ runner: processor, device: { kind: 'wasm', reason } as const });
  let device: ModelRunner | null = null;
  try {
    device = await openDevice();
    const { fault, deviceMs, processorMs } = await compareRunners(device, processor, prompt, now);
    const times = `${processorMs.toFixed(1)} ms per token, WebGPU ${deviceMs.toFixed(1)} ms`;
    const reason = fault ?? (forced || deviceMs < processorMs ? null : `WebAssembly is faster: ${times}.`);
    if (reason === null) {
      const onFault = (thrown: unknown) =>
        onChange({ kind: 'wasm', reason: `WebGPU failed, so WebAssembly goes on: ${oneLine(thrown)}` });
      const runner = new FallbackRunner(device, new SingleRowRunner(processor, allocateLogits), onFault);
      return { runner, device: { kind: 'webgpu', reason: null } };
    }
    device.dispose();
    return without(reason);
  } catch (thrown) {
    device?.dispose();
    return without(`WebGPU cannot run it: ${oneLine(thrown)}`);
  }
}

/** Runs a text, greedy tokens after it, and the last position of a slot on both, and compares logits. */
async function compareRunners(
  device: ModelRunner,
  processor: ModelRunner,
  prompt: Int32Array,
  now: () => number,
): Promise<Trial> {
  const failed = (fault: string): Trial => ({ fault, deviceMs: 0, processorMs: 0 });
  const times: [device: number, processor: number][] = [];
  const runners = [device, processor] as const;
  const both = async (run: (runner: ModelRunner) => Float32Array | Promise<Float32Array>) => {
    const [logits, took] = [[] as Float32Array[], [] as number[]];
    for (const runner of runners) {
      const begun = now();
      logits.push((await run(runner)).slice());
      took.push(now() - begun);
    }
    times.push(took as [number, number]);
    return differenceOf(logits as [Float32Array, Float32Array]);
  };
  const { prefillChunk, contextLength, slots } = processor.shape;
  const text = prompt.subarray(0, contextLength - COMPARED_TOKENS - 1);
  let last = { fault: null as string | null, best: 0 };
  for (let start = 0; start < text.length; start += prefillChunk) {
    const tokens = text.subarray(start, start + prefillChunk);
    const chunk = { slot: 0, start, tokens, logitsAt: Int32Array.of(tokens.length - 1) };
    last = await both((runner) => runner.prefill(chunk, NEVER));
    if (last.fault !== null) return failed(last.fault);
  }
  times.length = 0;
  for (let count = 0; count < COMPARED_TOKENS; count++) {
    last = await both((runner) => runner.decode(oneRow(0, last.best, text.length + count), NEVER));
    if (last.fault !== null) return failed(last.fault);
  }
  const timed = times.slice(WARM_UP);
  const [deviceMs, processorMs] = runners.map((_, side) => medianOf(timed.map((took) => took[side]!)));
  // Attention may use another kernel there. The slot has zeros before it, and the state of the text.
  for (const { states } of runners)
    states?.keep(0, text.length + COMPARED_TOKENS).restore(slots - 1, contextLength - 1);
  const { fault } = await both((runner) =>
    runner.decode(oneRow(slots - 1, last.best, contextLength - 1), NEVER),
  );
  return fault === null ? { fault, deviceMs: deviceMs!, processorMs: processorMs! } : failed(fault);
}

const oneRow = (slot: number, token: number, position: number) => ({
  firstSlot: slot,
  rows: 1,
  tokens: Int32Array.of(token),
  positions: Int32Array.of(position),
});

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Compares logits of a device with those of the processor, which it gives the best token of. */
function differenceOf([device, processor]: readonly [Float32Array, Float32Array]): {
  readonly fault: string | null;
  readonly best: number;
} {
  let [best, least, ofDevice, largest] = [0, 0, 0, 0];
  for (let token = 0; token < processor.length; token++) {
    if (processor[token]! > processor[best]!) best = token;
    if (processor[token]! < processor[least]!) least = token;
    if (device[token]! > device[ofDevice]!) ofDevice = token;
    largest = Math.max(largest, Math.abs(device[token]! - processor[token]!));
  }
  const share = largest / (processor[best]! - processor[least]!);
  if (!(share <= DEVICE_ROUNDING))
    return { fault: `WebGPU failed its self-test: logits differ by ${percent(share)} of their range.`, best };
  const agrees = ofDevice === best;
  return { fault: agrees ? null : 'WebGPU failed its self-test: a greedy token differs.', best };
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
