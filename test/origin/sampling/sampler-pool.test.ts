import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { samplerThreads } from '../../../origin/engine/sampler-threads.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { type TokenLogprobs, tokenLogprob } from '../../../origin/sampling/logprobs.ts';
import { JobList, MOST_JOBS } from '../../../origin/sampling/pool/job-list.ts';
import { DrawTeam } from '../../../origin/sampling/pool/sampler-pool.ts';
import { SharedEdits } from '../../../origin/sampling/pool/shared-edits.ts';
import { DrawJobs } from '../../../origin/sampling/pool/shared-jobs.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { TokenDraw } from '../../../origin/sampling/token-draw.ts';
import type { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import { TEST_SEED } from '../../support/random.ts';
import { anyRow, SIZE as TILE } from './any-row.ts';
import { anyHistory, anyParameters } from './arbitraries.ts';
import { historyOf, vocabularyOf } from './one-token.ts';

/** Enough tokens for nuclei that are not gathered. */
const SIZE = 6 * TILE;
const MOST_ROWS = 8;

const vocabulary = vocabularyOf(Array.from({ length: SIZE }, (_, id) => `<${id}>`));
const alone = new SamplerWorkspace(SIZE, new SimdKernel());

const anyBad = fc.tuple(fc.nat(SIZE - 1), fc.constantFrom(Number.NaN, Infinity, -Infinity, 0));
const anyLargeRow = fc.tuple(anyRow, fc.option(anyBad, { freq: 4 })).map(([tile, bad]) => {
  const row = Float32Array.from({ length: SIZE }, (_, id) => tile[id % TILE]! + Math.floor(id / TILE) / 64);
  return bad ? row.with(...bad) : row;
});

const anySampling = fc
  .tuple(
    anyParameters(SIZE),
    fc.constantFrom(0, 0, 0, 1, 2),
    fc.constantFrom('as drawn', 'nucleus alone', 'whole'),
  )
  .map(([parameters, mirostat, kind]): SamplingParameters => {
    const { temperature, topP } = parameters;
    if (kind === 'nucleus alone') return { ...NEUTRAL_SAMPLING, temperature, topP };
    if (kind === 'whole') return { ...NEUTRAL_SAMPLING, temperature };
    return { ...parameters, mirostat: mirostat as 0 | 1 | 2, allowedTokenIds: null };
  });

const anyAsked = fc.record({
  row: anyLargeRow,
  parameters: anySampling,
  prompt: anyHistory(SIZE, 12),
  generated: anyHistory(4, 30),
  forbidden: fc.array(fc.nat(SIZE - 1), { maxLength: 2 }),
  seed: fc.maxSafeInteger(),
  step: fc.nat(100_000),
  alternatives: fc.option(fc.nat(20)),
});

interface Drawn {
  readonly token: number;
  readonly bound: number;
  readonly scored: TokenLogprobs | null;
}

/** What a sampler draws by itself; null where it cannot. */
function drawnAlone(
  sampler: Sampler,
  row: Float32Array,
  history: TokenHistory,
  { step, forbidden, alternatives }: Pick<Asked, 'step' | 'forbidden' | 'alternatives'>,
): Drawn | null {
  try {
    const token = sampler.sample(row, history, step, null, forbidden);
    const scored = alternatives === null ? null : tokenLogprob(row, token, alternatives, alone);
    return { token, bound: sampler.draw.bound, scored };
  } catch {
    return null;
  }
}

type Asked = typeof anyAsked extends fc.Arbitrary<infer T> ? T : never;

describe('tokens that several threads draw', () => {
  it('are those that each sampler draws by itself, with the same logprobs, in round after round', async () => {
    const drawers = samplerThreads(4)!;
    const kernel = new SimdKernel(drawers);
    const memory = kernel.allocate(MOST_ROWS * SIZE);
    const rowAt = (index: number) => memory.subarray(index * SIZE, (index + 1) * SIZE);
    const team = new DrawTeam(kernel, SIZE, drawers);
    const step = async (asked: readonly Asked[]) => {
      for (const [index, { row }] of asked.entries()) memory.set(row, index * SIZE);
      while (!team.begin(memory)) await sleep(1);
      const expected = asked.map((one, index) => {
        const { parameters, prompt, generated, seed, forbidden, alternatives } = one;
        const history = historyOf(prompt, generated);
        const sampler = new Sampler(parameters, { seed, prompt: 1, choice: 2 }, vocabulary, alone);
        const edits = sampler.edit(rowAt(index), history, forbidden);
        expect(team.add(sampler.draw, rowAt(index), edits, one.step, alternatives)).toBe(index);
        return drawnAlone(sampler, rowAt(index), history, one);
      });
      team.run();
      for (const [draw, one] of expected.entries()) {
        // Others may still be at work on it.
        while (one !== null && team.token(draw) === null) await sleep(1);
        if (one === null) expect(team.token(draw)).toBeNull();
        else {
          const scored = one.scored && team.logprobs(draw);
          expect({ token: team.token(draw), bound: team.bound(draw), scored }).toEqual(one);
        }
      }
      team.end();
      expect(team.token(0)).toBeNull();
    };
    const anyStep = fc.array(anyAsked, { minLength: 2, maxLength: MOST_ROWS });
    await fc.assert(fc.asyncProperty(anyStep, step), { numRuns: 150 });
  });

  it('are drawn by the others alone where the caller does nothing', async () => {
    const drawers = samplerThreads(3)!;
    const kernel = new SimdKernel(drawers);
    const memory = kernel.allocate(MOST_ROWS * SIZE);
    const draws = { list: new JobList(), jobs: new DrawJobs(), edits: new SharedEdits() };
    for (const thread of [1, 2]) {
      const share = {
        rows: kernel.sharedArenaOf(memory)!.share,
        ...{ thread, vocabularySize: SIZE },
        ...{ list: draws.list.memory, jobs: draws.jobs.memory, edits: draws.edits.memory },
      };
      drawers.start(share, () => undefined);
    }
    for (let round = 0; round < 10; round++) {
      const rows = fc.sample(anyLargeRow, { numRuns: MOST_ROWS, seed: TEST_SEED + round });
      while (draws.list.busy) await sleep(1);
      const expected = rows.map((row, index) => {
        memory.set(row, index * SIZE);
        const identity = { seed: round, prompt: 0, choice: index };
        const draw = new TokenDraw({ ...NEUTRAL_SAMPLING, topP: index / MOST_ROWS }, identity, alone);
        const asked = { row: memory.byteOffset + 4 * index * SIZE, edits: 0, edited: 0, step: 3 };
        draws.jobs.ask(index, draw, { ...asked, alternatives: null });
        try {
          return draw.from(row, 3);
        } catch {
          return null;
        }
      });
      draws.list.open(MOST_ROWS);
      for (const [index, token] of expected.entries()) {
        while (!draws.list.isDone(index)) await sleep(1);
        expect(draws.jobs.token(index)).toBe(token);
      }
      draws.list.close();
    }
  });

  it('are drawn together again once a thread that died at its work is known to be gone', async () => {
    const { ordinary, start } = samplerThreads(2)!;
    const gone = Promise.withResolvers<void>();
    const kernel = new SimdKernel({ threads: 2, ordinary });
    const memory = kernel.allocate(2 * SIZE);
    const team = new DrawTeam(kernel, SIZE, {
      threads: 2,
      ordinary,
      start: (share, ended) => {
        const list = new JobList(share.list, share.thread);
        list.open(1);
        const die = () => {
          throw new Error('in the middle of a row');
        };
        expect(() => list.workOff(die)).toThrow();
        // A real thread that ends by a fault of its own.
        start({ ...share, vocabularySize: -1 }, () => {
          ended();
          gone.resolve();
        });
      },
    });
    const drawTwo = () => {
      if (!team.begin(memory)) return null;
      alone.edits.begin(memory);
      const draws = [0, 1].map((row) => {
        const draw = new TokenDraw(NEUTRAL_SAMPLING, { seed: 1, prompt: 0, choice: row }, alone);
        return team.add(draw, memory.subarray(row * SIZE, (row + 1) * SIZE), alone.edits, 0, null);
      });
      team.run();
      const tokens = draws.map((draw) => team.token(draw));
      team.end();
      return tokens;
    };
    expect(drawTwo()).not.toContain(null);
    expect(drawTwo()).toBeNull();
    await gone.promise;
    expect(drawTwo()).not.toContain(null);
    expect(drawTwo()).not.toBeNull();
  });

  it('are drawn without a thread that cannot be started', () => {
    const drawers = samplerThreads(2)!;
    const kernel = new SimdKernel(drawers);
    const rows = kernel.sharedArenaOf(kernel.allocate(SIZE))!.share;
    const [list, jobs, edits] = Array.from({ length: 3 }, () => new SharedArrayBuffer(8));
    let ended = false;
    const unsendable = { rows: { ...rows, module: () => 1 }, thread: 1, vocabularySize: SIZE };
    drawers.start({ ...unsendable, list: list!, jobs: jobs!, edits: edits! }, () => {
      ended = true;
    });
    expect(ended).toBe(true);
  });

  it('are left to their samplers where there are too many of them, or of their changes', () => {
    const drawers = samplerThreads(2)!;
    const kernel = new SimdKernel(drawers);
    const memory = kernel.allocate(SIZE);
    const team = new DrawTeam(kernel, SIZE, drawers);
    expect(team.begin(new Float32Array(SIZE))).toBe(false);
    expect(team.begin(memory)).toBe(true);
    const { edits } = alone;
    const draw = new TokenDraw(NEUTRAL_SAMPLING, { seed: 1, prompt: 0, choice: 0 }, alone);
    edits.begin(memory);
    for (let id = 0; id < SIZE; id++) edits.set(id, 1);
    const room = Math.floor(65_536 / SIZE);
    for (let row = 0; row < room; row++) expect(team.add(draw, memory, edits, 0, null)).toBe(row);
    expect(team.add(draw, memory, edits, 0, null)).toBe(-1);
    edits.begin(memory);
    for (let row = room; row < MOST_JOBS; row++) expect(team.add(draw, memory, edits, 0, null)).toBe(row);
    expect(team.add(draw, memory, edits, 0, null)).toBe(-1);
  });
});

describe('a list of jobs', () => {
  it('gives each job once, to whoever asks', () => {
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

  it('tells whether somebody is at work on it, and gives nothing once it is closed', () => {
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
