import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { reducersBeside } from '../../../origin/engine/engine-thread-reducers.ts';
import { RowBlocks } from '../../../origin/sampling/row-blocks.ts';
import { type BlockReductions, blockReductions } from '../../../origin/sampling/simd/block-reductions.ts';
import { ReductionJobs } from '../../../origin/sampling/simd/reduction-jobs.ts';
import { ReductionTeam } from '../../../origin/sampling/simd/reduction-team.ts';
import { SimdKernel } from '../../../origin/sampling/simd/simd-kernel.ts';
import { Instance, Memory, Module } from '../../../origin/sampling/simd/webassembly.ts';
import { anyColdness, anyRow, reduce, SIZE } from './any-row.ts';

const MOST_ROWS = 12;
const alone = new SimdKernel();
const team = new SimdKernel(reducersBeside(3));
const memory = team.allocate(MOST_ROWS * SIZE);
const rowAt = (index: number) => memory.subarray(index * SIZE, (index + 1) * SIZE);

/** What the blocks of a row say, or how it fails. */
function attempt(kernel: SimdKernel, row: Float32Array, coldness: number): unknown {
  try {
    return reduce(new RowBlocks(SIZE, kernel), row, coldness);
  } catch (thrown) {
    return String(thrown);
  }
}

const anyBad = fc.tuple(fc.nat(SIZE - 1), fc.constantFrom(Number.NaN, Infinity, -Infinity, 0));

/** A row, bad ones included; the coldness that is asked for, and those that were said to be. */
const anyAsked = fc.record({
  row: fc
    .tuple(anyRow, fc.option(anyBad, { freq: 4 }))
    .map(([row, bad]) => (bad ? row.with(bad[0], bad[1]) : row)),
  coldness: anyColdness,
  said: fc.option(fc.uniqueArray(anyColdness, { maxLength: 2 }), { freq: 4 }),
});

describe('rows that are reduced ahead', () => {
  it('have the bits they have alone, whatever was said of them, in round after round', () => {
    fc.assert(
      fc.property(fc.array(anyAsked, { minLength: 1, maxLength: MOST_ROWS }), (asked) => {
        for (const [index, { row }] of asked.entries()) memory.set(row, index * SIZE);
        team.reduceAhead(
          asked.flatMap(({ said }, index) => (said ? [{ row: rowAt(index), coldnesses: said }] : [])),
        );
        for (const [index, { row, coldness }] of asked.entries()) {
          expect(attempt(team, rowAt(index), coldness)).toEqual(attempt(alone, row, coldness));
        }
        team.forget();
      }),
      { numRuns: 400 },
    );
  });

  it('are reduced anew once they have been forgotten', () => {
    fc.assert(
      fc.property(fc.array(anyRow, { minLength: 4, maxLength: 4 }), anyColdness, (rows, coldness) => {
        for (const index of [0, 1]) memory.set(rows[index]!, index * SIZE);
        team.reduceAhead([0, 1].map((index) => ({ row: rowAt(index), coldnesses: [coldness] })));
        team.forget();
        for (const index of [0, 1]) {
          memory.set(rows[2 + index]!, index * SIZE);
          const found = attempt(team, rowAt(index), coldness);
          expect(found).toEqual(attempt(alone, rows[2 + index]!, coldness));
        }
      }),
    );
  });
});

describe('threads beside the engine’s', () => {
  it('do jobs that nobody else does, with the bits of the calling thread', async () => {
    const shared = new Memory({ initial: 4, maximum: 4, shared: true });
    const module = new Module(blockReductions(true));
    const helpers = reducersBeside(2)!;
    const { exports } = new Instance(module, { memory: { of: shared } });
    const reductions = exports as BlockReductions;
    const { jobs } = new ReductionTeam({
      module,
      memory: shared,
      bytes: helpers.ordinary(shared.buffer as SharedArrayBuffer),
      reductions,
      helpers,
      resultsOf: () => 0,
    });
    const [rows, results, expected, blocks] = [1024, 131_072, 196_608, 7];
    const numbers = new Float32Array(shared.buffer);
    for (let round = 0; round < 20; round++) {
      const drawn = fc.sample(anyRow, { numRuns: 6, seed: round });
      for (const [index, row] of drawn.entries()) numbers.set(row, rows / 4 + index * SIZE);
      const listed = drawn.map((_, index) => ({
        row: new Float32Array(shared.buffer, rows + 4 * index * SIZE, SIZE),
        coldnesses: [1, 1.25].slice(0, index % 3),
      }));
      const resultsOf = (row: number) => results + (128 * (row - rows)) / SIZE;
      while (!jobs.open(listed, resultsOf)) await sleep(1);
      for (const [index, { row: view, coldnesses }] of listed.entries()) {
        while (!jobs.isDone(index)) await sleep(1);
        const row = view.byteOffset;
        const found = resultsOf(row);
        const highest = Math.max(...drawn[index]!);
        reductions.maxima(row, blocks, expected);
        for (const [k, coldness] of coldnesses.entries()) {
          reductions.sums(row, blocks, expected + 4 * blocks * (k + 1), highest, coldness);
        }
        const bytes = 4 * blocks * (1 + coldnesses.length);
        const bits = (at: number) => [...new Uint8Array(shared.buffer, at, bytes)];
        expect(bits(found)).toEqual(bits(expected));
      }
      jobs.close();
    }
  });
});

describe('a list of jobs', () => {
  const numbers = new Float32Array(16);
  const job = (index: number) => ({ row: numbers.subarray(index), coldnesses: [1, index + 2] });
  const none = () => 0;

  it('gives each job once, to whoever asks, with what was said of it', () => {
    const jobs = new ReductionJobs();
    const other = new ReductionJobs(jobs.memory);
    for (let round = 1; round <= 3; round++) {
      const taken: number[] = [];
      expect(jobs.open([job(0), job(1), job(2)], none)).toBe(true);
      expect(jobs.isDone(0)).toBe(false);
      jobs.workOff((index) => {
        taken.push(index);
        if (index === 0) other.workOff((inner) => taken.push(inner));
        expect(jobs.isDone(index)).toBe(false);
      });
      expect(taken.sort()).toEqual([0, 1, 2]);
      for (const index of taken) {
        expect([other.row(index), other.coldness(index, 0), other.coldness(index, 1)]).toEqual([
          4 * index,
          1,
          index + 2,
        ]);
        expect(other.isDone(index)).toBe(true);
      }
      jobs.close();
    }
  });

  it('is not begun anew while somebody is at work on it, and gives nothing once it is closed', () => {
    const jobs = new ReductionJobs();
    jobs.open([job(0), job(1)], none);
    const taken: number[] = [];
    jobs.workOff((index) => {
      taken.push(index);
      jobs.close();
      expect(jobs.open([job(0)], none)).toBe(false);
    });
    expect(taken).toEqual([0]);
    expect(jobs.open([job(0)], none)).toBe(true);
    expect(jobs.isDone(0)).toBe(false);
  });
});
