import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Compaction,
  DecodeBatchBuilder,
  prefillChunk,
} from '../../../../origin/engine/scheduling/step-plan.ts';

describe('prefill chunks', () => {
  it('cover the prompt once and keep to the grid for every set of cached chunks', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 16 }),
        fc.nat(10),
        fc.constantFrom('none' as const, 'last' as const, 'all' as const),
        fc.nat(120),
        fc.integer({ min: 1, max: 3 }),
        (length, chunk, cachedChunks, wanted, start, chunks) => {
          const from = wanted === 'last' ? Math.min(start, length - 1) : start;
          const prompt = Int32Array.from({ length }, (_, at) => at);
          let computed = Math.min(cachedChunks * chunk, length - 1);
          computed -= computed % chunk;
          const first = computed;
          const seen: number[] = [];
          const logits: number[] = [];
          while (computed < length) {
            const progress = { slot: 3, runnable: prompt, computed, images: [] };
            const logitsOf = { wantedLogits: wanted, logitsFrom: from };
            const run = prefillChunk({ ...progress, ...logitsOf }, { chunk, chunks });
            expect(run.start).toBe(computed);
            const end = run.start + run.tokens.length;
            expect(run.start % chunk === 0 || run.tokens.length === 1).toBe(true);
            expect(run.tokens.length).toBeLessThanOrEqual(
              wanted === 'all' || run.logitsAt.length > 1 ? chunk : chunks * chunk,
            );
            // The last chunk may be incomplete; a single position is computed alone.
            expect(end % chunk === 0 || end >= length - 1).toBe(true);
            if (end % chunk === 1) expect(run.tokens.length).toBe(1);
            seen.push(...run.tokens);
            logits.push(...[...run.logitsAt].map((at) => run.start + at));
            computed += run.tokens.length;
          }
          const expected = [...prompt.subarray(first)];
          expect(seen).toEqual(expected);
          // Of the chunk with the first wanted position, all logits are computed.
          const scored = expected.filter((at) => at >= from - (from % chunk) && from < length);
          const last = expected.filter((at) => at >= from);
          expect(logits).toEqual(wanted === 'all' ? scored : wanted === 'last' ? last : []);
        },
      ),
    );
  });
});

describe('the decode batch', () => {
  it('covers every decoding slot, and lets idle rows write only at their idle position', () => {
    const row = fc.option(fc.record({ slot: fc.nat(), computed: fc.nat(50), lastToken: fc.nat(50) }));
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 10 }), fc.nat(9), (bySlot, extra) => {
        const minRows = 1 + (extra % bySlot.length);
        const slots = bySlot.length;
        const rowMultiple = slots % 2 === 0 ? 1 + (extra % 2) : 1;
        const builder = new DecodeBatchBuilder({ slots, minRows, rowMultiple });
        const batch = builder.build(bySlot, (slot) => 100 + slot);
        const decoding = bySlot.flatMap((sequence, slot) => (sequence === null ? [] : [slot]));
        if (batch === null) {
          expect(decoding).toEqual([]);
          return;
        }
        const [first, last] = [decoding[0]!, decoding.at(-1)!];
        const least = Math.max(minRows, last - first + 1);
        expect(batch.rows).toBe(least + (least % rowMultiple));
        expect(batch.firstSlot).toBeGreaterThanOrEqual(0);
        expect(batch.firstSlot).toBeLessThanOrEqual(first);
        expect(batch.firstSlot + batch.rows).toBeGreaterThan(last);
        expect(batch.firstSlot + batch.rows).toBeLessThanOrEqual(bySlot.length);
        for (let at = 0; at < batch.rows; at++) {
          const slot = batch.firstSlot + at;
          const sequence = bySlot[slot];
          expect(batch.tokens[at]).toBe(sequence?.lastToken ?? 0);
          expect(batch.positions[at]).toBe(sequence?.computed ?? 100 + slot);
        }
      }),
    );
  });
});

const compactionRow = (slot: number, computed: number) => ({ slot, computed, lastToken: 0 });

describe('compaction', () => {
  it('moves a sequence from an end of the range into a free slot within it', () => {
    const slots = fc.array(fc.option(fc.integer({ min: 1, max: 500 })), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(slots, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (computed, free) => {
        const bySlot = computed.map((length, slot) => (length === null ? null : compactionRow(slot, length)));
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
      const bySlot = [compactionRow(0, length), null, compactionRow(2, length)];
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
      expect(compaction.next([null, compactionRow(1, 9), compactionRow(2, 9), null], () => true)).toBeNull();
    }
  });
});
