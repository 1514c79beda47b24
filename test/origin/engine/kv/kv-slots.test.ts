import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KvSlots } from '../../../../origin/engine/kv/kv-slots.ts';
import type { KvCopy } from '../../../../origin/engine/kv/pending-copies.ts';
import { runs } from '../../../support/random.ts';

const CHUNK = 4;
const CONTEXT = 20;

/** A KV cache of strings: the true content of each position. */
class Memory {
  readonly rows: string[][];

  constructor(slots: number) {
    this.rows = Array.from({ length: slots }, () => Array.from({ length: CONTEXT }, () => 'nothing'));
  }

  copy(copies: readonly KvCopy[]): void {
    for (const { from, to, start, end } of copies) {
      for (let at = start; at < end; at++) this.rows[to]![at] = this.rows[from]![at]!;
    }
  }

  write(slot: number, start: number, tokens: readonly string[]): void {
    tokens.forEach((token, at) => {
      this.rows[slot]![start + at] = token;
    });
  }
}

const tokensOf = (namespace: string, prompt: Int32Array) =>
  [...prompt].map((token) => `${namespace}${token}`);

const prompt = fc
  .array(fc.nat(1), { minLength: 1, maxLength: CONTEXT, size: 'max' })
  .map((tokens) => Int32Array.from(tokens));
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('assign' as const),
      prompt,
      namespace: fc.constantFrom('x', 'y'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('compute' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('fork' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('move' as const), pick: fc.nat(), to: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('release' as const),
      pick: fc.nat(),
      reusable: fc.boolean(),
      generated: fc.array(fc.nat(1), { maxLength: CONTEXT }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('rewrite' as const), pick: fc.nat(), from: fc.nat() }),
  },
  { weight: 3, arbitrary: fc.constant({ type: 'piece' as const }) },
  { weight: 2, arbitrary: fc.constant({ type: 'idle' as const }) },
  { weight: 2, arbitrary: fc.constant({ type: 'trim' as const }) },
);

interface Holder {
  slot: number;
  readonly namespace: string;
  readonly prompt: Int32Array;
  computed: number;
}

/** More slots than free ones keep prefixes beside a store, or few. */
const slotsAndStore = fc.tuple(
  fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(12)),
  fc.boolean(),
  fc.constantFrom(3, 7, CONTEXT),
);

describe('KV slots', () => {
  it('hold for every sequence what it would have computed itself, after any reuse, copy in pieces, move, decode, rewrite, idle write and trim', () => {
    fc.assert(
      fc.property(
        slotsAndStore,
        fc.array(command, { maxLength: 60, size: 'max' }),
        ([slots, hasStore, maxCopied], commands) => {
          const kv = new KvSlots({ slots, contextLength: CONTEXT, prefillChunk: CHUNK, maxCopied }, hasStore);
          const memory = new Memory(slots);
          const holders: Holder[] = [];
          for (const step of commands) {
            const holder = 'pick' in step ? holders[step.pick % Math.max(1, holders.length)] : undefined;
            if (step.type === 'assign' && holders.length < slots) {
              const assignment = kv.assign(step.prompt, step.namespace, Infinity);
              memory.copy(assignment.copies);
              expect(assignment.cached % CHUNK).toBe(0);
              expect(assignment.cached).toBeLessThan(step.prompt.length);
              holders.push({ ...step, slot: assignment.slot, computed: assignment.cached });
            } else if (step.type === 'compute' && holder !== undefined && !kv.isArriving(holder.slot)) {
              const end = Math.min(holder.prompt.length, holder.computed + CHUNK);
              const computed = tokensOf(holder.namespace, holder.prompt).slice(holder.computed, end);
              memory.write(holder.slot, holder.computed, computed);
              holder.computed = end;
              kv.record(holder.slot, end);
            } else if (step.type === 'fork' && holder !== undefined && holders.length < slots) {
              const fork = kv.fork(holder.slot, holder.computed);
              memory.copy(fork.copies);
              holders.push({ ...holder, slot: fork.slot });
            } else if (step.type === 'move' && holder !== undefined && holders.length < slots) {
              const free = Array.from({ length: slots }, (_, slot) => slot).filter(
                (slot) => !kv.isHeld(slot),
              );
              const to = free[step.to % free.length]!;
              memory.copy(kv.move(holder.slot, to, holder.computed));
              holder.slot = to;
            } else if (step.type === 'release' && holder !== undefined) {
              const { slot, namespace, prompt: tokens, computed } = holder;
              if (computed === tokens.length && !kv.isArriving(slot)) {
                const whole = Int32Array.from([...tokens, ...step.generated]).subarray(0, CONTEXT);
                memory.write(slot, computed, tokensOf(namespace, whole).slice(computed));
              }
              kv.release(holder.slot, step.reusable);
              holders.splice(holders.indexOf(holder), 1);
            } else if (step.type === 'rewrite' && holder !== undefined && !kv.isArriving(holder.slot)) {
              const { slot, computed } = holder;
              holder.computed = Math.min(computed, step.from % CONTEXT);
              memory.copy(kv.keepAtMost(slot, holder.computed));
              memory.write(slot, holder.computed, Array(computed - holder.computed).fill('rewritten'));
            } else if (step.type === 'piece') {
              const pieces = kv.pieces();
              memory.copy(pieces);
              const copied = pieces.reduce((sum, { start, end }) => sum + end - start, 0);
              expect(copied).toBeLessThanOrEqual(maxCopied);
            } else if (step.type === 'idle') {
              for (let slot = 0; slot < slots; slot++) {
                if (!kv.isHeld(slot)) memory.write(slot, kv.kept(slot), ['garbage']);
              }
            } else if (step.type === 'trim') {
              const waiting = kv.surplus;
              const surplus = kv.takeSurplus();
              expect(surplus !== null).toBe(waiting > 0);
              if (surplus !== null) memory.rows[surplus.slot]!.fill('nothing', surplus.kept);
            }
            expect(kv.held).toBe(holders.length);
            expect(new Set(holders.map(({ slot }) => slot)).size).toBe(holders.length);
            for (const { slot, namespace, prompt: tokens, computed } of holders) {
              expect(kv.isHeld(slot)).toBe(true);
              if (kv.isArriving(slot)) continue;
              expect(memory.rows[slot]!.slice(0, computed)).toEqual(
                tokensOf(namespace, tokens).slice(0, computed),
              );
            }
          }
        },
      ),
      { numRuns: runs(1500) },
    );
  });

  it.each([
    [true, 8],
    [false, 20],
  ])('keep prefixes that a store has (%j) in the %d free slots that were used last', (hasStore, most) => {
    const kv = new KvSlots({ slots: 20, contextLength: CONTEXT, prefillChunk: CHUNK }, hasStore);
    const own = (serial: number) => Int32Array.from({ length: CHUNK + 1 }, (_, at) => serial * 10 + at);
    const slots = Array.from({ length: 20 }, (_, serial) => {
      const { slot } = kv.assign(own(serial), 'x', Infinity);
      kv.record(slot, CHUNK);
      return slot;
    });
    for (const slot of slots) kv.release(slot, true);
    for (let waiting = kv.surplus; waiting > 0; waiting = kv.surplus) kv.takeSurplus();
    const kept = slots.filter((slot) => kv.kept(slot) > 0);
    expect(kept).toEqual(slots.slice(20 - most));
  });

  it('keep the most recently used prefixes, one per free slot', () => {
    const uses = fc.array(fc.record({ hold: fc.boolean(), drop: fc.nat() }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), uses, fc.nat(), (slots, steps, pick) => {
        const kv = new KvSlots({ slots, contextLength: CONTEXT, prefillChunk: CHUNK });
        const own = (serial: number) => Int32Array.from({ length: CHUNK + 1 }, (_, at) => serial * 10 + at);
        const held: { slot: number; serial: number }[] = [];
        const released: number[] = [];
        const release = (at: number) => {
          const [gone] = held.splice(at, 1);
          kv.release(gone!.slot, true);
          released.unshift(gone!.serial);
        };
        steps.forEach(({ hold, drop }, serial) => {
          if (held.length === slots) release(drop % held.length);
          const { slot } = kv.assign(own(serial), 'x', Infinity);
          kv.record(slot, CHUNK + 1);
          held.push({ slot, serial });
          if (!hold) release(drop % held.length);
        });
        if (held.length === slots) release(0);
        const recent = released.slice(0, slots - held.length);
        if (recent.length === 0) return;
        expect(kv.assign(own(recent[pick % recent.length]!), 'x', Infinity).cached).toBe(CHUNK);
      }),
      { numRuns: runs(1000) },
    );
  });

  it('reuse the prefix of a free slot in place, without a copy', () => {
    const kv = new KvSlots({ slots: 4, contextLength: CONTEXT, prefillChunk: CHUNK });
    const first = Int32Array.from({ length: 9 }, (_, at) => at);
    const { slot } = kv.assign(first, 'x', Infinity);
    kv.record(slot, 9);
    kv.release(slot, true);
    expect(kv.assign(first, 'x', Infinity)).toEqual({ slot, cached: 8, copies: [] });
  });

  it('save the rest of a prefix that is reused in part, while another slot is empty', () => {
    const kv = new KvSlots({ slots: 2, contextLength: CONTEXT, prefillChunk: CHUNK });
    const whole = Int32Array.from({ length: 9 }, (_, at) => at);
    const { slot } = kv.assign(whole, 'x', Infinity);
    kv.record(slot, 9);
    kv.release(slot, true);
    const branch = kv.assign(Int32Array.of(0, 1, 2, 3, 9, 9), 'x', Infinity);
    expect(branch).toMatchObject({ slot, cached: CHUNK });
    expect(kv.assign(whole, 'x', Infinity).cached).toBe(2 * CHUNK);
  });

  it('leave prompts without images to the prefix store, if there is one', () => {
    const kv = new KvSlots({ slots: 2, contextLength: CONTEXT, prefillChunk: CHUNK }, true);
    const whole = Int32Array.from({ length: 2 * CHUNK + 1 }, (_, at) => at);
    const image = { at: 1, count: 1, key: 'picture' };
    for (const images of [[], [image]]) {
      const { slot } = kv.assign(whole, 'x', Infinity, images);
      kv.record(slot, whole.length);
      kv.release(slot, true);
      const { copies } = kv.assign(whole.subarray(0, CHUNK + 1), 'x', Infinity, images);
      expect(copies).toHaveLength(images.length);
      kv.release(slot, false);
    }
  });

  it('copy from a free slot that is far from the held ones, which keeps the rest of its prefix', () => {
    const kv = new KvSlots({ slots: 6, contextLength: CONTEXT, prefillChunk: CHUNK });
    for (let serial = 0; serial < 3; serial++) kv.assign(Int32Array.of(serial), 'x', Infinity);
    const whole = Int32Array.from({ length: 9 }, (_, at) => at);
    const far = kv.assign(whole, 'x', Infinity).slot;
    kv.record(far, 9);
    for (const slot of [far, 1, 2]) kv.release(slot, true);
    const branch = kv.assign(Int32Array.of(0, 1, 2, 3, 9, 9), 'x', Infinity);
    expect(branch).toEqual({
      slot: 1,
      cached: CHUNK,
      copies: [{ from: far, to: 1, start: 0, end: CHUNK }],
    });
    expect(kv.assign(whole, 'x', Infinity).cached).toBe(2 * CHUNK);
  });

  it('continue in a free slot whose copy would cost more than the rows between it and the held ones', () => {
    const kv = new KvSlots({ slots: 6, contextLength: 400, prefillChunk: CHUNK });
    for (let serial = 0; serial < 3; serial++) kv.assign(Int32Array.of(serial), 'x', Infinity);
    const long = Int32Array.from({ length: 261 }, (_, at) => at);
    const { slot } = kv.assign(long, 'x', Infinity);
    kv.record(slot, 261);
    for (const free of [slot, 1, 2]) kv.release(free, true);
    expect(kv.assign(long, 'x', Infinity)).toEqual({ slot, cached: 260, copies: [] });
  });

  it('drop first a prefix that was copied to another slot', () => {
    const kv = new KvSlots({ slots: 4, contextLength: CONTEXT, prefillChunk: CHUNK });
    const long = (serial: number) => Int32Array.from({ length: 9 }, (_, at) => serial * 10 + at);
    for (const prompt of [Int32Array.of(0), Int32Array.of(1), long(2), long(3)]) {
      kv.record(kv.assign(prompt, 'x', Infinity).slot, prompt.length);
    }
    for (const slot of [2, 3, 1]) kv.release(slot, true);
    expect(kv.assign(long(3), 'x', Infinity)).toMatchObject({ slot: 1, copies: [{ from: 3 }] });
    expect(kv.assign(Int32Array.of(4), 'x', Infinity).slot).toBe(2);
    expect(kv.assign(long(2), 'x', Infinity).cached).toBe(2 * CHUNK);
  });

  it('leave one position of a full slot for idle rows', () => {
    const kv = new KvSlots({ slots: 1, contextLength: CONTEXT, prefillChunk: CHUNK });
    kv.record(kv.assign(new Int32Array(CONTEXT), 'x', Infinity).slot, CONTEXT);
    expect(kv.kept(0)).toBe(CONTEXT - CHUNK);
  });

  it('copy from a held slot', () => {
    const kv = new KvSlots({ slots: 4, contextLength: CONTEXT, prefillChunk: CHUNK });
    const tokens = Int32Array.from({ length: 9 }, (_, at) => at);
    const { slot } = kv.assign(tokens, 'x', Infinity);
    kv.record(slot, 9);
    const second = kv.assign(tokens.slice(0, 6), 'x', Infinity);
    expect(second.cached).toBe(4);
    expect(second.copies).toEqual([{ from: slot, to: second.slot, start: 0, end: 4 }]);
  });

  it('never share a prefix across namespaces, or if the cache is off', () => {
    const kv = new KvSlots({ slots: 4, contextLength: CONTEXT, prefillChunk: CHUNK });
    const tokens = Int32Array.from({ length: 9 }, (_, at) => at);
    const { slot } = kv.assign(tokens, 'x', Infinity);
    kv.record(slot, 9);
    expect(kv.assign(tokens, 'y', Infinity).cached).toBe(0);
    expect(kv.assign(tokens, 'x', 0).cached).toBe(0);
  });

  it('are assigned next to each other, so that one contiguous range covers the held ones', () => {
    const kv = new KvSlots({ slots: 8, contextLength: CONTEXT, prefillChunk: CHUNK });
    const slots = Array.from(
      { length: 5 },
      (_, serial) => kv.assign(Int32Array.of(serial), 'x', Infinity).slot,
    );
    expect(Math.max(...slots) - Math.min(...slots)).toBe(4);
    kv.release(slots[2]!, true);
    expect(kv.assign(Int32Array.of(9), 'x', Infinity).slot).toBe(slots[2]);
  });

  it('read a slot after the pieces that it waits for, and leave its memory alone until then', () => {
    const kv = new KvSlots({ slots: 3, contextLength: CONTEXT, prefillChunk: CHUNK, maxCopied: 5 });
    const tokens = Int32Array.from({ length: 13 }, (_, at) => at);
    const assign = (prompt: Int32Array) => kv.assign(prompt, 'x', Infinity);
    const before = assign(Int32Array.of(7)).slot;
    const from = assign(tokens).slot;
    kv.record(from, 12);
    const after = assign(Int32Array.of(8)).slot;
    kv.release(before, false);
    const long = assign(tokens);
    expect(long).toMatchObject({ slot: before, cached: 12, copies: [] });
    kv.release(after, false);
    const short = assign(Int32Array.of(0, 1, 2, 3, 9));
    expect(short).toMatchObject({ slot: after, cached: 4, copies: [] });
    kv.release(long.slot, false);
    expect(kv.surplus).toBe(0);
    expect(kv.pieces()).toEqual([{ from, to: long.slot, start: 0, end: 5 }]);
    expect(kv.pieces()).toEqual([{ from, to: long.slot, start: 5, end: 10 }]);
    expect(kv.pieces()).toEqual([
      { from, to: long.slot, start: 10, end: 12 },
      { from: long.slot, to: short.slot, start: 0, end: 3 },
    ]);
    expect(kv.isArriving(short.slot)).toBe(true);
    expect(kv.pieces()).toEqual([{ from: long.slot, to: short.slot, start: 3, end: 4 }]);
    expect(kv.pieces()).toEqual([]);
    expect(kv.surplus).toBe(1);
    kv.release(assign(tokens).slot, false);
    expect(kv.surplus).toBe(0);
  });

  it('leave a slot that is still read alone while there is another free one', () => {
    const kv = new KvSlots({ slots: 3, contextLength: CONTEXT, prefillChunk: CHUNK, maxCopied: 5 });
    const tokens = Int32Array.from({ length: 13 }, (_, at) => at);
    const { slot: from } = kv.assign(tokens, 'x', Infinity);
    kv.record(from, 13);
    expect(kv.move(from, 1, 13)).toEqual([]);
    const other = kv.assign(Int32Array.of(99), 'y', Infinity);
    expect(other).toMatchObject({ slot: 2, copies: [] });
    const last = kv.assign(Int32Array.of(98), 'y', Infinity);
    expect(last).toMatchObject({ slot: from, copies: [{ from, to: 1, start: 0, end: 13 }] });
  });
});
