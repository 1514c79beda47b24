import koffi from 'koffi';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { BoundTensor } from '../../../../origin/model/ort/bound-tensors.ts';
import { openCudaDriver } from '../../../../origin/model/ort/cuda-driver.ts';
import type { OrtBinding } from '../../../../origin/model/ort/ort-binding.ts';
import type { OrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import type { OrtDeviceMemory } from '../../../../origin/model/ort/ort-device.ts';
import { CudaKvCopier } from '../../../../origin/model/runner/device/cuda-kv-copier.ts';
import { DeviceStates } from '../../../../origin/model/runner/device/device-states.ts';
import { HostStates, StateCache, type StateMemory } from '../../../../origin/model/runner/state-cache.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../support/fake-cuda-driver.ts';

const TENSORS = [
  { past: 'a', present: 'A', dimensions: [2, 3] },
  { past: 'b', present: 'B', dimensions: [1, 1] },
  { past: 'c', present: 'C', dimensions: [6] },
];

type Memory = (tensors: typeof TENSORS, slots: number) => StateMemory;

const inMainMemory: Memory = (tensors, slots) => {
  const api = { addressOf: koffi.address, allocate: (bytes: number) => new Uint8Array(bytes) };
  return new HostStates(api as unknown as OrtApi, tensors, slots);
};

let driver: string | undefined;

/** The card of the driver is the main memory. What is there at first is no number. */
const onCard: Memory = (tensors, slots) => {
  const copier = new CudaKvCopier(openCudaDriver((driver ??= buildFakeCudaDriver().file)).copies(0));
  onTestFinished(() => copier.dispose());
  const owners: Uint8Array[] = [];
  const memory = {
    info: 0n,
    allocate: (bytes: number) => koffi.address(owners[owners.push(new Uint8Array(bytes).fill(255)) - 1]!),
    at: (address: bigint, offset: number) => address + BigInt(offset),
  };
  return new DeviceStates(memory as unknown as OrtDeviceMemory, copier, tensors, slots);
};

/** A cache of three slots, and the arrays that runs would read and write. */
function newCache(memoryOf: Memory) {
  const arrays = new Map<string, Float32Array>();
  const cache = new StateCache(memoryOf(TENSORS, 3), TENSORS, 3);
  const keep = (name: string, { address, dimensions }: BoundTensor) => {
    const length = dimensions.reduce((product, size) => product * size, 1);
    arrays.set(name, new Float32Array(koffi.view(address, 4 * length)));
  };
  /** A run of one slot, which may be stopped before its end. */
  const begin = (slot: number, start: number) => {
    const { from, begun } = cache.begin(slot, [start], 1);
    cache.bind({ input: keep, output: keep } as unknown as OrtBinding, slot, 1, from);
    return begun[0]!;
  };
  const run = (slot: number, start: number, end: number, value: number) => {
    if (!begin(slot, start)) return false;
    for (const present of ['A', 'B', 'C']) arrays.get(present)!.fill(value);
    cache.end(slot, end);
    return true;
  };
  const valueAt = (slot: number, position: number) => {
    const bytes = new Uint8Array(cache.bytes);
    cache.read(slot, position, bytes);
    const values = new Set(new Float32Array(bytes.buffer));
    return values.size === 1 ? [...values][0] : values;
  };
  return { cache, begin, run, valueAt };
}

describe.each([
  ['main memory', inMainMemory],
  ['the memory of a card', onCard],
] as const)('states of slots in %s', (where, memoryOf) => {
  beforeEach(({ skip }) => {
    if (where !== 'main memory' && !hasCompiler) skip('there is no C compiler');
  });

  it('go on from where the last run ended, or again from where it began', () => {
    const { run, valueAt } = newCache(memoryOf);
    run(1, 0, 4, 7);
    expect([valueAt(1, 0), valueAt(1, 4)]).toEqual([0, 7]);
    run(1, 4, 5, 8);
    run(1, 4, 5, 9);
    expect([valueAt(1, 4), valueAt(1, 5)]).toEqual([7, 9]);
  });

  it('are those of before a run that did not end', () => {
    const { begin, run, valueAt } = newCache(memoryOf);
    run(0, 0, 4, 7);
    begin(0, 4);
    expect(valueAt(0, 4)).toBe(7);
    expect(() => valueAt(0, 5)).toThrow('slot 0 has no state of position 5');
  });

  it('begin with zeros at position 0, whatever the slot had', () => {
    const { begin, run, valueAt } = newCache(memoryOf);
    run(2, 0, 4, Number.NaN);
    run(2, 4, 5, Number.NaN);
    begin(2, 0);
    expect(valueAt(2, 0)).toBe(0);
  });

  it('of other positions are refused, and nothing changes', () => {
    const { begin, run, valueAt } = newCache(memoryOf);
    run(0, 0, 4, 7);
    run(0, 4, 5, 8);
    expect(run(0, 3, 4, 9)).toBe(false);
    expect(valueAt(0, 4)).toBe(7);
    expect(begin(0, 4)).toBe(true);
  });

  it.each([
    [
      'written to another slot as they were read',
      (cache: StateCache) => {
        const bytes = new Uint8Array(cache.bytes);
        cache.read(0, 4, bytes);
        cache.write(2, 4, bytes);
      },
    ],
    ['restored in another slot as they were kept', (cache: StateCache) => cache.keep(0, 4).restore(2, 4)],
  ])('are %s', (_, move) => {
    const { cache, run, valueAt } = newCache(memoryOf);
    run(0, 0, 4, 7);
    move(cache);
    expect(run(2, 4, 5, 8)).toBe(true);
    expect([valueAt(2, 4), valueAt(2, 5), valueAt(0, 4)]).toEqual([7, 8, 7]);
  });
});
