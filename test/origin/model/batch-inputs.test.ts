import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DecodeInputs, LENGTH_BLOCK, PrefillInputs } from '../../../origin/model/runner/batch-inputs.ts';

const SLOTS = 5;
const CONTEXT = 2 * LENGTH_BLOCK + 60;

const batch = fc
  .array(fc.record({ token: fc.nat(9999), position: fc.nat(CONTEXT - 1) }), {
    minLength: 1,
    maxLength: SLOTS,
  })
  .map((rows) => ({
    firstSlot: 0,
    rows: rows.length,
    tokens: Int32Array.from(rows, ({ token }) => token),
    positions: Int32Array.from(rows, ({ position }) => position),
  }));

it('the inputs of a decode run are those of its batch after any history of batches', () => {
  fc.assert(
    fc.property(fc.array(batch, { minLength: 1, maxLength: 8 }), (batches) => {
      const inputs = new DecodeInputs(SLOTS, CONTEXT);
      for (const current of batches) {
        inputs.fill(current);
        const [total] = inputs.totalLength;
        expect(total).toBeGreaterThan(Math.max(...current.positions));
        expect(total).toBeLessThanOrEqual(CONTEXT);
        expect(inputs.lastPositions.subarray(0, current.rows)).toEqual(current.positions);
        for (let row = 0; row < current.rows; row++) {
          expect(inputs.tokens[row]).toBe(BigInt(current.tokens[row]!));
          expect(inputs.positions[row]).toBe(BigInt(current.positions[row]!));
          expect(inputs.logitsIndex[row]).toBe(BigInt(row));
        }
      }
    }),
  );
});

it('the total length stays constant while rows grow within a block', () => {
  const inputs = new DecodeInputs(1, CONTEXT);
  const totalAt = (position: number) => {
    inputs.fill({ firstSlot: 0, rows: 1, tokens: Int32Array.of(1), positions: Int32Array.of(position) });
    return inputs.totalLength[0];
  };
  expect(totalAt(0)).toBe(LENGTH_BLOCK);
  expect(totalAt(LENGTH_BLOCK - 1)).toBe(LENGTH_BLOCK);
  expect(totalAt(LENGTH_BLOCK)).toBe(2 * LENGTH_BLOCK);
  expect(totalAt(CONTEXT - 1)).toBe(CONTEXT);
});

it('a prefill chunk is written at its positions, and its length is exact', () => {
  const inputs = new PrefillInputs(1, 4);
  inputs.fill([{ slot: 2, start: 8, tokens: Int32Array.of(5, 6, 7), logitsAt: Int32Array.of(0, 2) }]);
  expect([...inputs.tokens.subarray(0, 3)]).toEqual([5n, 6n, 7n]);
  expect([...inputs.positions.subarray(0, 3)]).toEqual([8n, 9n, 10n]);
  expect([...inputs.logitsIndex.subarray(0, 2)]).toEqual([0n, 2n]);
  expect([inputs.lastPositions[0], inputs.totalLength[0]]).toEqual([10, 11]);
});

it('prompts of one run are padded at their ends to the longest', () => {
  const inputs = new PrefillInputs(2, 8);
  const shape = inputs.fill([
    { slot: 2, start: 0, tokens: Int32Array.of(5, 6), logitsAt: Int32Array.of(1) },
    { slot: 3, start: 0, tokens: Int32Array.of(7, 8, 9), logitsAt: Int32Array.of(0, 2) },
  ]);
  expect(shape).toEqual({ sequences: 2, length: 3, logits: 3 });
  expect([...inputs.tokens.subarray(0, 6)]).toEqual([5n, 6n, 0n, 7n, 8n, 9n]);
  expect([...inputs.positions.subarray(0, 6)]).toEqual([0n, 1n, 2n, 0n, 1n, 2n]);
  expect([...inputs.logitsIndex.subarray(0, 3)]).toEqual([1n, 3n, 5n]);
  expect([...inputs.lastPositions]).toEqual([1, 2]);
  expect(inputs.totalLength[0]).toBe(3);
});
