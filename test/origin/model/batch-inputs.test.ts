import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DecodeInputs, MASK_BLOCK, PrefillInputs } from '../../../origin/model/runner/batch-inputs.ts';

const SLOTS = 5;
const CONTEXT = 2 * MASK_BLOCK + 60;

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

it('a reused decode mask equals a fresh one after any history of batches', () => {
  fc.assert(
    fc.property(fc.array(batch, { minLength: 1, maxLength: 8 }), (batches) => {
      const inputs = new DecodeInputs(SLOTS, CONTEXT);
      for (const current of batches) {
        inputs.fill(current);
        const { maskWidth } = inputs;
        expect(maskWidth).toBeGreaterThan(Math.max(...current.positions));
        expect(maskWidth).toBeLessThanOrEqual(CONTEXT);
        for (let row = 0; row < current.rows; row++) {
          const written = inputs.mask.slice(row * maskWidth, (row + 1) * maskWidth);
          const length = current.positions[row]! + 1;
          const expected = Array.from({ length: maskWidth }, (_, i) => (i < length ? 1n : 0n));
          expect([...written]).toEqual(expected);
          expect(inputs.tokens[row]).toBe(BigInt(current.tokens[row]!));
          expect(inputs.positions[row]).toBe(BigInt(current.positions[row]!));
          expect(inputs.logitsIndex[row]).toBe(BigInt(row));
        }
      }
    }),
    { numRuns: 60 },
  );
});

it('the mask’s width stays constant while rows grow within a block', () => {
  const inputs = new DecodeInputs(1, CONTEXT);
  const widthAt = (position: number) => {
    inputs.fill({ firstSlot: 0, rows: 1, tokens: Int32Array.of(1), positions: Int32Array.of(position) });
    return inputs.maskWidth;
  };
  expect(widthAt(0)).toBe(MASK_BLOCK);
  expect(widthAt(MASK_BLOCK - 1)).toBe(MASK_BLOCK);
  expect(widthAt(MASK_BLOCK)).toBe(2 * MASK_BLOCK);
  expect(widthAt(CONTEXT - 1)).toBe(CONTEXT);
});

it('a prefill chunk is written at its positions with a mask of ones', () => {
  const inputs = new PrefillInputs(4, 20);
  inputs.fill({ slot: 2, start: 8, tokens: Int32Array.of(5, 6, 7), logitsAt: Int32Array.of(0, 2) });
  expect([...inputs.tokens.subarray(0, 3)]).toEqual([5n, 6n, 7n]);
  expect([...inputs.positions.subarray(0, 3)]).toEqual([8n, 9n, 10n]);
  expect([...inputs.logitsIndex.subarray(0, 2)]).toEqual([0n, 2n]);
  expect(inputs.mask.every((value) => value === 1n)).toBe(true);
});
