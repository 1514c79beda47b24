import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Compaction } from '../../../origin/engine/scheduler.ts';

const row = (slot: number, computed: number) => ({ slot, computed, lastToken: 0 });

describe('compaction', () => {
  it('moves a sequence from an end of the range into a free slot within it', () => {
    const slots = fc.array(fc.option(fc.integer({ min: 1, max: 500 })), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(slots, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (computed, free) => {
        const bySlot = computed.map((length, slot) => (length === null ? null : row(slot, length)));
        const compaction = new Compaction();
        const used = bySlot.flatMap((sequence, slot) => (sequence === null ? [] : [slot]));
        const holes = bySlot.flatMap((sequence, slot) =>
          sequence === null && free[slot] === true && slot > used[0]! && slot < used.at(-1)! ? [slot] : [],
        );
        for (let step = 0; step < 20; step++) {
          const move = compaction.next(bySlot, (slot) => free[slot] === true);
          if (move === null) continue;
          expect([used[0], used.at(-1)]).toContain(move.from);
          expect(holes).toContain(move.to);
          return;
        }
        expect(holes).toEqual([]);
      }),
    );
  });

  it('waits until computing the holes has cost as much as the copy', () => {
    const steps = (length: number) => {
      const compaction = new Compaction();
      const bySlot = [row(0, length), null, row(2, length)];
      let count = 1;
      while (compaction.next(bySlot, () => true) === null) count++;
      return count;
    };
    expect(steps(64)).toBe(1);
    expect(steps(640)).toBe(10);
  });

  it('does not move anything in a range without holes', () => {
    const compaction = new Compaction();
    for (let step = 0; step < 100; step++) {
      expect(compaction.next([null, row(1, 9), row(2, 9), null], () => true)).toBeNull();
    }
  });
});
