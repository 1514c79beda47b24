import { expect, it } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { findMinRows } from '../../../origin/model/open/probe.ts';

const shape = { vocabularySize: 16, contextLength: 8, prefillChunk: 4, minRows: 1 };

/** A runner whose rows have the rounding errors that `error` returns, as real kernels have. */
function runnerOf(slots: number, error: (row: number, rows: number) => number): ModelRunner {
  const unused = () => {
    throw new Error('not for this');
  };
  return {
    shape: { ...shape, slots },
    kvBytes: null,
    decode: ({ rows, tokens }) => {
      const logits = new Float32Array(rows * shape.vocabularySize);
      for (let row = 0; row < rows; row++) {
        const value = tokens[row]! + error(row, rows);
        logits.fill(value, row * shape.vocabularySize, (row + 1) * shape.vocabularySize);
      }
      return logits;
    },
    prefill: unused,
    copy: unused,
    dispose: unused,
  };
}

const OFF = 1e-5;

it.each([
  { kernel: 'every row is its own', error: () => 0, least: 1 },
  {
    kernel: 'a lone row rounds otherwise',
    error: (_: number, rows: number) => (rows === 1 ? OFF : 0),
    least: 2,
  },
  {
    kernel: 'odd numbers leave a last row over',
    error: (row: number, rows: number) => (rows % 2 === 1 && row === rows - 1 ? OFF : 0),
    least: null,
  },
  { kernel: 'all rows share a scale', error: (_: number, rows: number) => rows * OFF, least: null },
])('where $kernel, runs need $least rows (null: must be of one)', async ({ error, least }) => {
  expect(await findMinRows(runnerOf(8, error))).toBe(least);
});

it('a single slot needs no comparison', async () => {
  expect(await findMinRows(runnerOf(1, (_, rows) => rows * OFF))).toBe(1);
});

it('two slots are compared with single rows', async () => {
  expect(await findMinRows(runnerOf(2, (_, rows) => (rows === 1 ? OFF : 0)))).toBe(2);
});
