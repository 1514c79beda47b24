import { expect, test } from 'vitest';
import type { RunBinding } from '../../../../origin/model/ort/bound-tensors.ts';
import { StateCache } from '../../../../origin/model/runner/state-cache.ts';
import type { WebGpuSession } from '../../../../origin/model/web/webgpu-session.ts';
import { WebGpuStates } from '../../../../origin/model/web/webgpu-states.ts';

const TENSORS = [
  { past: 'a', present: 'A', dimensions: [2, 3] },
  { past: 'b', present: 'B', dimensions: [1] },
];
const SLOTS = 2;

type Buffer = Float32Array;

/** The states of a session whose buffers are arrays, and runs that fill them with a value. */
function newStates() {
  const buffers: Buffer[] = [];
  const allocate = (bytes: number) => {
    const buffer = new Float32Array(bytes / 4);
    return { buffer, address: BigInt(buffers.push(buffer) - 1), memory: 4n };
  };
  const encoder = {
    copyBufferToBuffer: (from: Buffer, fromAt: number, to: Buffer, toAt: number, bytes: number) =>
      to.set(from.subarray(fromAt / 4, (fromAt + bytes) / 4), toAt / 4),
    clearBuffer: (buffer: Buffer) => buffer.fill(0),
  };
  const session = { allocate, submit: (encode: (to: typeof encoder) => void) => encode(encoder) };
  const memory = new WebGpuStates(session as unknown as WebGpuSession, TENSORS, SLOTS);
  const cache = new StateCache(memory, TENSORS, SLOTS);
  /** Returns what the run reads: one number if all are equal. */
  const run = (slot: number, start: number, value: number) => {
    const { from, begun } = cache.begin(slot, [start], 1);
    const read = new Set<number>();
    const bound = (use: (buffer: Buffer) => void): RunBinding['input'] => {
      return (_, { address }) => use(buffers[Number(address)]!);
    };
    const binding: Pick<RunBinding, 'input' | 'output'> = {
      input: bound((buffer) => buffer.forEach((each) => void read.add(each))),
      output: bound((buffer) => buffer.fill(value)),
    };
    cache.bind(binding as RunBinding, slot, 1, from);
    cache.end(slot, start + 1);
    return begun[0] ? [...read] : null;
  };
  return { cache, run };
}

test('runs go on from states in buffers of the device, which are never read back', () => {
  const { cache, run } = newStates();
  expect([run(0, 0, 7), run(0, 1, 8), run(0, 1, 9), run(0, 2, Number.NaN)]).toEqual([[0], [7], [7], [9]]);
  expect([run(1, 2, 6), run(0, 0, 5)]).toEqual([null, [0]]);
  expect(() => cache.read(0, 1, new Uint8Array(28))).toThrow('not read back');
});

test('a kept state is that of its position in any slot, and is lost after two more per slot', () => {
  const { cache, run } = newStates();
  run(0, 0, 7);
  const first = cache.keep(0, 1);
  run(0, 1, 8);
  first.restore(1, 1);
  first.restore(0, 1);
  expect([run(1, 1, 3), run(0, 1, 4)]).toEqual([[7], [7]]);
  const later = Array.from({ length: 3 }, () => cache.keep(0, 2));
  expect(first.isLost).toBe(false);
  later.push(cache.keep(1, 2));
  expect([first, ...later].map(({ isLost }) => isLost)).toEqual([true, false, false, false, false]);
  expect(() => first.restore(0, 1)).toThrow('another state has taken its memory');
  later[3]!.restore(0, 2);
  expect(run(0, 2, 1)).toEqual([3]);
});
