import { expect, it } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import {
  areNear,
  findJoinsPrompts,
  findMaxPrefillChunks,
  findRows,
} from '../../../origin/model/open/row-probe.ts';

const shape = { vocabularySize: 16, contextLength: 8, prefillChunk: 4, minRows: 1 };

/** A runner whose rows have the rounding errors that `error` returns, as real kernels have. */
function runnerOf(slots: number, error: (row: number, rows: number) => number): ModelRunner {
  const unused = () => {
    throw new Error('not for this');
  };
  return {
    shape: { ...shape, slots },
    kvBytes: { positionBytes: 1, read: unused, write: unused, discard: unused },
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
/** Kernels of pairs, and another one for the last of an odd number. */
const leftOver = (row: number, rows: number) => (rows % 2 === 1 && row === rows - 1 ? OFF : 0);

it.each([
  { kernel: 'every row is its own', error: () => 0, rows: { minRows: 1, rowMultiple: 1 } },
  {
    kernel: 'a lone row rounds otherwise',
    error: (_: number, rows: number) => (rows === 1 ? OFF : 0),
    rows: { minRows: 2, rowMultiple: 1 },
  },
  {
    kernel: 'odd numbers leave a last row over',
    error: leftOver,
    rows: { minRows: 2, rowMultiple: 2 },
  },
  { kernel: 'all rows share a scale', error: (_: number, rows: number) => rows * OFF, rows: null },
])('where $kernel, runs need $rows (null: must be of one row)', async ({ error, rows }) => {
  expect(await findRows(runnerOf(8, error))).toEqual(rows);
});

it.each([3, 4, 5, 6])('a row that is left over is found with %i slots', async (slots) => {
  expect(await findRows(runnerOf(slots, leftOver))).toEqual({ minRows: 2, rowMultiple: 2 });
});

it('a single slot needs no comparison', async () => {
  expect(await findRows(runnerOf(1, (_, rows) => rows * OFF))).toEqual({ minRows: 1, rowMultiple: 1 });
});

it('two slots are compared with single rows', async () => {
  const error = (_: number, rows: number) => (rows === 1 ? OFF : 0);
  expect(await findRows(runnerOf(2, error))).toEqual({ minRows: 2, rowMultiple: 2 });
});

const noError = () => 0;
it.each([
  { runs: 'keep the bits of each position', error: noError, offBy: noError, chunks: 2, onCard: 2 },
  {
    runs: 'round by their number of rows',
    error: (rows: number) => rows,
    offBy: noError,
    chunks: 1,
    onCard: 2,
  },
  { runs: 'lose a chunk', error: noError, offBy: (rows: number) => rows, chunks: 1, onCard: 1 },
])('prefill runs that $runs cover at most $chunks chunks, $onCard on a card', async (one) => {
  const { error, offBy, chunks, onCard } = one;
  const prefillChunk = 8;
  const kv = new Uint8Array(2 * prefillChunk);
  const runner: ModelRunner = {
    ...runnerOf(1, () => 0),
    shape: { ...shape, slots: 1, contextLength: 16, prefillChunk },
    kvBytes: {
      positionBytes: 1,
      read: (_, start, end, bytes) => bytes.set(kv.subarray(start, end)),
      write: () => {},
      discard: () => {},
    },
    prefill: ({ start, tokens }) => {
      kv.set(
        tokens.map((token) => token + error(tokens.length)),
        start,
      );
      return Promise.resolve(Float32Array.of(tokens.at(-1)! + offBy(tokens.length), 0));
    },
  };
  expect(await findMaxPrefillChunks(runner)).toBe(chunks);
  expect(await findMaxPrefillChunks(runner, areNear)).toBe(onCard);
});

it.each([
  { kernel: 'rounds by the shape of a run', error: 1e-3, joins: true },
  { kernel: 'reads the padding', error: 1, joins: false },
])(
  'prompts share a run unless attention does more than round: one that $kernel',
  async ({ error, joins }) => {
    const logits = (tokens: Int32Array, off: number) => [tokens.at(-1)! + off, -tokens.length];
    const runner: ModelRunner = {
      ...runnerOf(4, () => 0),
      shape: { ...shape, slots: 4, contextLength: 64, prefillChunk: 32 },
      prefill: async ({ tokens }) => Float32Array.from(logits(tokens, 0)),
      prefillTogether: async (prompts) =>
        Float32Array.from(prompts.flatMap(({ tokens }) => logits(tokens, error))),
    };
    expect(await findJoinsPrompts(runner)).toBe(joins);
  },
);
