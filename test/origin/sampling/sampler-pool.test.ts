import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { samplerThreads } from '../../../origin/engine/thread/sampler-threads.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { type TokenLogprobs, tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { JobList, MAX_JOBS } from '../../../origin/sampling/pool/job-list.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import { SharedJobs } from '../../../origin/sampling/pool/shared-jobs.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { TokenDraw } from '../../../origin/sampling/token-draw.ts';
import type { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { runs } from '../../support/random.ts';
import { anyRow, SIZE as TILE } from './any-row.ts';
import { anyHistory, anyMask, anyParameters } from './arbitraries.ts';
import { historyOf, vocabularyOf, workspaceOf } from './one-token.ts';

const SIZE = 6 * TILE;
const MAX_ROWS = 8;

const { tokenBytes } = vocabularyOf(Array.from({ length: SIZE }, (_, id) => `<${id}>`));
const alone = workspaceOf(SIZE);

const anyBad = fc.tuple(fc.nat(SIZE - 1), fc.constantFrom(Number.NaN, Infinity, -Infinity, 0));
const anyLargeRow = fc.tuple(anyRow, fc.option(anyBad, { freq: 4 })).map(([tile, bad]) => {
  const row = Float32Array.from({ length: SIZE }, (_, id) => tile[id % TILE]! + Math.floor(id / TILE) / 64);
  return bad ? row.with(...bad) : row;
});

const anySampling = fc
  .tuple(
    anyParameters(SIZE),
    fc.constantFrom(0, 0, 0, 1, 2),
    fc.constantFrom('as drawn', 'top-p only', 'whole'),
  )
  .map(([parameters, mirostat, kind]): SamplingParameters => {
    const { temperature, topP } = parameters;
    if (kind === 'top-p only') return { ...NEUTRAL_SAMPLING, temperature, topP };
    if (kind === 'whole') return { ...NEUTRAL_SAMPLING, temperature };
    return { ...parameters, mirostat: mirostat as 0 | 1 | 2 };
  });

const anyAsked = fc.record({
  row: anyLargeRow,
  parameters: anySampling,
  prompt: anyHistory(SIZE, 12),
  generated: anyHistory(4, 30),
  forbidden: fc.array(fc.nat(SIZE - 1), { maxLength: 2 }),
  mask: fc.option(anyMask(SIZE)),
  seed: fc.maxSafeInteger(),
  step: fc.nat(100_000),
  topLogprobs: fc.option(fc.nat(20)),
});

interface Drawn {
  readonly token: number;
  readonly bound: number;
  readonly logprobs: TokenLogprobs | null;
}

/** What a sampler draws itself; null if it throws. */
function drawnAlone(
  sampler: Sampler,
  row: Float32Array,
  history: TokenHistory,
  { step, mask, forbidden, topLogprobs }: Pick<Asked, 'step' | 'mask' | 'forbidden' | 'topLogprobs'>,
): Drawn | null {
  try {
    const token = sampler.sample(row, history, step, mask, forbidden);
    const logprobs = topLogprobs === null ? null : tokenLogprob(row, token, topLogprobs, alone);
    return { token, bound: sampler.draw.bound, logprobs };
  } catch {
    return null;
  }
}

type Asked = typeof anyAsked extends fc.Arbitrary<infer T> ? T : never;

describe('a sampler pool', () => {
  it('draws the tokens that each sampler draws itself, with the same logprobs, in every round', async () => {
    const threads = samplerThreads(4)!;
    const kernel = new SimdKernel(threads.threads, threads.viewMemory);
    const memory = kernel.allocate(MAX_ROWS * SIZE);
    const rowAt = (index: number) => memory.subarray(index * SIZE, (index + 1) * SIZE);
    const pool = new SamplerPool(kernel, SIZE, threads);
    const step = async (asked: readonly Asked[]) => {
      for (const [index, { row }] of asked.entries()) memory.set(row, index * SIZE);
      while (!pool.begin(memory)) await sleep(1);
      const expected = asked.map((one, index) => {
        const { parameters, prompt, generated, seed, forbidden, topLogprobs } = one;
        const history = historyOf(prompt, generated);
        const sampler = new Sampler(parameters, { seed, prompt: 1, choice: 2 }, tokenBytes, alone);
        const mask = sampler.restrict(one.mask?.slice() ?? null);
        const edits = sampler.edit(rowAt(index), history, forbidden, null, mask);
        expect(pool.add(sampler.draw, rowAt(index), edits, one.step, topLogprobs)).toBe(index);
        return drawnAlone(sampler, rowAt(index), history, one);
      });
      pool.run();
      for (const [draw, one] of expected.entries()) {
        // Another thread may still be working on it.
        while (one !== null && pool.token(draw) === null) await sleep(1);
        if (one === null) expect(pool.token(draw)).toBeNull();
        else {
          const logprobs = one.logprobs && pool.logprobs(draw);
          expect({ token: pool.token(draw), bound: pool.bound(draw), logprobs }).toEqual(one);
        }
      }
      pool.end();
      expect(pool.token(0)).toBeNull();
    };
    const anyStep = fc.array(anyAsked, { minLength: 2, maxLength: MAX_ROWS });
    await fc.assert(fc.asyncProperty(anyStep, step), { numRuns: runs(150) });
  });

  it('draws on its other threads if the caller does nothing', async () => {
    const threads = samplerThreads(3)!;
    const kernel = new SimdKernel(threads.threads, threads.viewMemory);
    const memory = kernel.allocate(MAX_ROWS * SIZE);
    const [list, jobs] = [new JobList(), new SharedJobs(SIZE)];
    for (const thread of [1, 2]) {
      const share = {
        rows: kernel.sharedArenaOf(memory)!.share,
        thread,
        vocabularySize: SIZE,
        sparseRows: 0,
        list: list.memory,
        jobs: jobs.memory,
      };
      threads.start(share, () => undefined);
    }
    for (let round = 0; round < 10; round++) {
      const rows = fc.sample(anyLargeRow, { numRuns: MAX_ROWS, seed: round });
      while (list.busy) await sleep(1);
      const expected = rows.map((row, index) => {
        memory.set(row, index * SIZE);
        const ofRow = { seed: round, prompt: 0, choice: index };
        const draw = new TokenDraw({ ...NEUTRAL_SAMPLING, topP: index / MAX_ROWS }, ofRow, alone);
        const { parameters, identity, bound } = draw;
        const address = memory.byteOffset + 4 * index * SIZE;
        const job = { parameters, identity, bound, row: address, step: 3, topLogprobs: null };
        alone.edits.begin(memory);
        jobs.write(index, job, alone.edits);
        try {
          return draw.from(row, 3);
        } catch {
          return null;
        }
      });
      list.open(MAX_ROWS);
      for (const [index, token] of expected.entries()) {
        while (!list.isDone(index)) await sleep(1);
        expect(jobs.token(index)).toBe(token);
      }
      list.close();
    }
  });

  it('draws again after a thread that died during a job has ended', async () => {
    const { viewMemory, start } = samplerThreads(2)!;
    const gone = Promise.withResolvers<void>();
    const kernel = new SimdKernel(2, viewMemory);
    const memory = kernel.allocate(2 * SIZE);
    const pool = new SamplerPool(kernel, SIZE, {
      threads: 2,
      viewMemory,
      start: (share, ended) => {
        const list = new JobList(share.list, share.thread);
        list.open(1);
        const die = () => {
          throw new Error('in the middle of a row');
        };
        expect(() => list.workOff(die)).toThrow();
        // A real thread that ends with an error.
        start({ ...share, vocabularySize: -1 }, () => {
          ended();
          gone.resolve();
        });
      },
    });
    const drawTwo = () => {
      if (!pool.begin(memory)) return null;
      alone.edits.begin(memory);
      const draws = [0, 1].map((row) => {
        const draw = new TokenDraw(NEUTRAL_SAMPLING, { seed: 1, prompt: 0, choice: row }, alone);
        return pool.add(draw, memory.subarray(row * SIZE, (row + 1) * SIZE), alone.edits, 0, null);
      });
      pool.run();
      const tokens = draws.map((draw) => pool.token(draw));
      pool.end();
      return tokens;
    };
    expect(drawTwo()).not.toContain(null);
    expect(drawTwo()).toBeNull();
    await gone.promise;
    expect(drawTwo()).not.toContain(null);
    expect(drawTwo()).not.toBeNull();
  });

  it('continues without a thread that cannot be started', () => {
    const threads = samplerThreads(2)!;
    const kernel = new SimdKernel(threads.threads, threads.viewMemory);
    const rows = kernel.sharedArenaOf(kernel.allocate(SIZE))!.share;
    const [list, jobs] = [new SharedArrayBuffer(8), new SharedArrayBuffer(8)];
    let ended = false;
    // A function cannot be sent to another thread.
    const unsendable = {
      rows: { ...rows, unsendable: () => 1 },
      thread: 1,
      vocabularySize: SIZE,
      sparseRows: 0,
    };
    threads.start({ ...unsendable, list, jobs }, () => {
      ended = true;
    });
    expect(ended).toBe(true);
  });

  it('refuses draws beyond its room for jobs and edits', () => {
    const threads = samplerThreads(2)!;
    const kernel = new SimdKernel(threads.threads, threads.viewMemory);
    const memory = kernel.allocate(SIZE);
    const pool = new SamplerPool(kernel, SIZE, threads);
    expect(pool.begin(new Float32Array(SIZE))).toBe(false);
    expect(pool.begin(memory)).toBe(true);
    const { edits } = alone;
    const draw = new TokenDraw(NEUTRAL_SAMPLING, { seed: 1, prompt: 0, choice: 0 }, alone);
    edits.begin(memory);
    for (let id = 0; id < SIZE; id++) edits.set(id, 1);
    const room = Math.floor(65_536 / SIZE);
    for (let row = 0; row < room; row++) expect(pool.add(draw, memory, edits, 0, null)).toBe(row);
    expect(pool.add(draw, memory, edits, 0, null)).toBe(-1);
    edits.begin(memory);
    for (let row = room; row < MAX_JOBS; row++) expect(pool.add(draw, memory, edits, 0, null)).toBe(row);
    expect(pool.add(draw, memory, edits, 0, null)).toBe(-1);
  });
});

describe('a job list', () => {
  it('hands out each job once', () => {
    const list = new JobList();
    const other = new JobList(list.memory, 1);
    for (let round = 1; round <= 3; round++) {
      const taken: number[] = [];
      list.open(3);
      expect(list.isDone(0)).toBe(false);
      list.workOff((index) => {
        taken.push(index);
        if (index === 0) other.workOff((inner) => taken.push(inner));
        expect(list.isDone(index)).toBe(false);
      });
      expect(taken.sort()).toEqual([0, 1, 2]);
      for (const index of taken) expect(other.isDone(index)).toBe(true);
      expect(list.isDone(3)).toBe(false);
      list.close();
      expect(list.isDone(0)).toBe(false);
    }
  });

  it('reports whether a thread is busy, and hands out nothing once it is closed', () => {
    const list = new JobList();
    list.open(2);
    const taken: number[] = [];
    list.workOff((index) => {
      taken.push(index);
      list.close();
      expect(list.busy).toBe(true);
    });
    expect(taken).toEqual([0]);
    expect(list.busy).toBe(false);
    list.workOff((index) => taken.push(index));
    expect(taken).toEqual([0]);
    list.open(2);
    expect(list.isDone(0)).toBe(false);
  });
});
