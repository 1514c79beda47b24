import { describe, expect, it } from 'vitest';
import type { OrtBinding } from '../../../../origin/model/ort/ort-binding.ts';
import type { OrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import { HostStates, StateCache } from '../../../../origin/model/runner/state-cache.ts';

const TENSORS = [
  { past: 'a', present: 'A', dimensions: [2, 3] },
  { past: 'b', present: 'B', dimensions: [1, 1] },
];

/** A cache of three slots, and the arrays that runs would read and write. */
function newCache() {
  const arrays = new Map<string, Float32Array>();
  const api = { addressOf: () => 0n, allocate: (bytes: number) => new Uint8Array(bytes) };
  const cache = new StateCache(new HostStates(api as unknown as OrtApi, TENSORS, 3), TENSORS, 3);
  const keep = (name: string, { owner }: { readonly owner: Uint8Array<ArrayBuffer> }) =>
    arrays.set(name, new Float32Array(owner.buffer));
  /** A run of one slot, which may be stopped before its end. */
  const begin = (slot: number, start: number) => {
    const { from, begun } = cache.begin(slot, [start], 1);
    cache.bind({ input: keep, output: keep } as unknown as OrtBinding, slot, 1, from);
    return begun[0]!;
  };
  const run = (slot: number, start: number, end: number, value: number) => {
    if (!begin(slot, start)) return false;
    arrays.get('A')!.fill(value, 6 * slot, 6 * slot + 6);
    arrays.get('B')!.fill(value, slot, slot + 1);
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

describe('states of slots', () => {
  it('go on from where the last run ended, or again from where it began', () => {
    const { run, valueAt } = newCache();
    run(1, 0, 4, 7);
    expect([valueAt(1, 0), valueAt(1, 4)]).toEqual([0, 7]);
    run(1, 4, 5, 8);
    run(1, 4, 5, 9);
    expect([valueAt(1, 4), valueAt(1, 5)]).toEqual([7, 9]);
  });

  it('are those of before a run that did not end', () => {
    const { begin, run, valueAt } = newCache();
    run(0, 0, 4, 7);
    begin(0, 4);
    expect(valueAt(0, 4)).toBe(7);
    expect(() => valueAt(0, 5)).toThrow('slot 0 has no state of position 5');
  });

  it('begin with zeros at position 0, whatever the slot had', () => {
    const { begin, run, valueAt } = newCache();
    run(2, 0, 4, Number.NaN);
    run(2, 4, 5, Number.NaN);
    begin(2, 0);
    expect(valueAt(2, 0)).toBe(0);
  });

  it('of other positions are refused, and nothing changes', () => {
    const { begin, run, valueAt } = newCache();
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
    const { cache, run, valueAt } = newCache();
    run(0, 0, 4, 7);
    move(cache);
    expect(run(2, 4, 5, 8)).toBe(true);
    expect([valueAt(2, 4), valueAt(2, 5), valueAt(0, 4)]).toEqual([7, 8, 7]);
  });
});
