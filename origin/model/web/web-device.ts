import { oneLine } from '@continuo/shared/error-details.ts';
import type { ModelRunner } from '../model-runner.ts';
import { compareRun, compareText, oneRow } from '../runner/compare-runners.ts';
import type { AllocateLogits } from '../runner/runner-options.ts';
import { SingleRowRunner } from '../runner/single-row-runner.ts';
import { FallbackRunner } from './fallback-runner.ts';

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

/** Compares a text, greedy tokens after it, and the last position of a slot. */
async function compareRunners(
  device: ModelRunner,
  processor: ModelRunner,
  prompt: Int32Array,
  now: () => number,
): Promise<Trial> {
  const runners = [device, processor] as const;
  const failed = (fault: string): Trial => ({
    fault: `WebGPU failed its self-test: ${fault}.`,
    deviceMs: 0,
    processorMs: 0,
  });
  const { fault, best, length, runs } = await compareText(runners, prompt, now);
  if (fault !== null) return failed(fault);
  if (runs.some(({ hasSameToken }) => !hasSameToken)) return failed('a greedy token differs');
  // Attention may use another kernel there. The slot has zeros before it, and the state of the text.
  const { contextLength, slots } = processor.shape;
  for (const { states } of runners) states?.keep(0, length).restore(slots - 1, contextLength - 1);
  const end = oneRow(slots - 1, best, contextLength - 1);
  const last = await compareRun(runners, (runner) => runner.decode(end, NEVER));
  if (last.fault !== null) return failed(last.fault);
  if (!last.hasSameToken) return failed('a greedy token differs');
  const timed = runs.slice(WARM_UP).map(({ took }) => took);
  const [deviceMs, processorMs] = runners.map((_, side) => medianOf(timed.map((took) => took[side]!)));
  return { fault: null, deviceMs: deviceMs!, processorMs: processorMs! };
}

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
