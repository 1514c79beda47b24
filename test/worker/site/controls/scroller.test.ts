import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rowWindow, scrollToRow } from '../../../../worker/site/controls/scroller.ts';

const ROW = 28;

describe('the window of rendered rows', () => {
  const count = fc.nat(20_000);
  const pixels = fc.integer({ min: 0, max: 600_000 });

  test('covers what is visible and little more', () => {
    fc.assert(
      fc.property(count, pixels, fc.integer({ min: 0, max: 2_000 }), (rows, scroll, height) => {
        const { start, end } = rowWindow(rows, scroll, height, ROW);
        expect(start).toBeGreaterThanOrEqual(0);
        expect(end).toBeGreaterThanOrEqual(start);
        expect(end).toBeLessThanOrEqual(rows);
        expect(end - start).toBeLessThanOrEqual(Math.ceil(height / ROW) + 18);
        if (scroll + height > rows * ROW) return;
        expect(start * ROW).toBeLessThanOrEqual(scroll);
        expect(end * ROW).toBeGreaterThanOrEqual(Math.min(scroll + height, rows * ROW));
      }),
    );
  });

  test('scrolls to a row by the least distance', () => {
    expect(scrollToRow(0, 500, 280, ROW)).toBe(0);
    expect(scrollToRow(20, 500, 280, ROW)).toBe(500);
    expect(scrollToRow(100, 500, 280, ROW)).toBe(101 * ROW - 280);
  });
});
