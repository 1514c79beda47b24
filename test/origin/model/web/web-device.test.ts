import { expect, test } from 'vitest';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { inOrdinaryMemory } from '../../../../origin/model/runner/runner-options.ts';
import { chooseRunner } from '../../../../origin/model/web/web-device.ts';
import { randomTokens } from '../synthetic-runner.ts';

const VOCABULARY = 16;
const PROMPT = randomTokens(48, 1, VOCABULARY);

type Change = (logits: Float32Array, position: number) => void;

/** Logits from 0 to 15, and 14.8 as the second; `change` stands for the device's rounding. */
function fakeRunner(clock: { ms: number }, msPerRun: number, change: Change = () => {}) {
  let disposals = 0;
  const run = (token: number, position: number) => {
    clock.ms += msPerRun;
    const logits = Float32Array.from({ length: VOCABULARY }, (_, id) => {
      const logit = (7 * id + token + position) % VOCABULARY;
      return logit === 14 ? 14.8 : logit;
    });
    change(logits, position);
    return logits;
  };
  const runner: ModelRunner = {
    shape: { vocabularySize: VOCABULARY, contextLength: 64, slots: 2, prefillChunk: 32, minRows: 1 },
    kvBytes: { positionBytes: 1, read() {}, write() {}, discard() {} },
    decode: async ({ tokens, positions }) => run(tokens[0]!, positions[0]!),
    prefill: async ({ tokens, start }) => run(tokens.at(-1)!, start + tokens.length - 1),
    copy() {},
    dispose: () => void disposals++,
  };
  return { runner, disposals: () => disposals };
}

async function chosen({
  deviceMs = 1,
  forced = false,
  change,
}: {
  deviceMs?: number;
  forced?: boolean;
  change?: Change;
}) {
  const clock = { ms: 0 };
  const processor = fakeRunner(clock, 5);
  const device = fakeRunner(clock, deviceMs, change);
  const choice = await chooseRunner(processor.runner, async () => device.runner, {
    prompt: PROMPT,
    forced,
    allocateLogits: inOrdinaryMemory,
    now: () => clock.ms,
    onChange: () => {},
  });
  return { ...choice.device, isProcessor: choice.runner === processor.runner, disposed: device.disposals() };
}

const WEBGPU = { kind: 'webgpu', reason: null, isProcessor: false, disposed: 0 };
const wasm = (reason: string) => ({ kind: 'wasm', reason, isProcessor: true, disposed: 1 });

test('WebGPU is chosen if it rounds by less than 3 % of the range and is faster', async () => {
  expect(await chosen({ change: (logits) => void (logits[logits.indexOf(0)] = 0.44) })).toEqual(WEBGPU);
});

test('a device that is slower is refused with both times, unless the visitor wants it', async () => {
  const reason = 'WebAssembly is faster: 5.0 ms per token, WebGPU 20.0 ms.';
  expect(await chosen({ deviceMs: 20 })).toEqual(wasm(reason));
  expect(await chosen({ deviceMs: 20, forced: true })).toEqual(WEBGPU);
});

test.each<[string, Change]>([
  ['logits differ by 3.1 % of their range', (logits) => void (logits[logits.indexOf(0)] = 0.46)],
  ['logits differ by NaN % of their range', (logits) => void (logits[3] = Number.NaN)],
  [
    'a greedy token differs',
    (logits, position) => void (position === 50 && (logits[logits.indexOf(15)] = 14.7)),
  ],
  ['logits differ by', (logits, position) => void (logits[3]! += position === 63 ? 1 : 0)],
])('a device is refused, also if forced, and disposed: %s', async (fault, change) => {
  const { reason, ...rest } = await chosen({ forced: true, change });
  expect(reason).toMatch(`WebGPU failed its self-test: ${fault}`);
  expect(rest).toEqual({ kind: 'wasm', isProcessor: true, disposed: 1 });
});

test('a device that cannot open the model leaves it to WebAssembly', async () => {
  const { runner } = fakeRunner({ ms: 0 }, 1);
  const open = () => Promise.reject(new Error('no kernel\n for it'));
  const choice = await chooseRunner(runner, open, {
    prompt: PROMPT,
    forced: true,
    allocateLogits: inOrdinaryMemory,
    now: () => 0,
    onChange: () => {},
  });
  expect(choice.device).toEqual({ kind: 'wasm', reason: 'WebGPU cannot run it: no kernel for it' });
});
