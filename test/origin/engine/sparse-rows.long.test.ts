import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { samplerThreads } from '../../../origin/engine/thread/sampler-threads.ts';
import type { CompiledGrammar } from '../../../origin/grammar/runtime/constraint.ts';
import type { ModelRunner, SparseRows } from '../../../origin/model/model-runner.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import type { SamplingParameters } from '../../../shared/sampling.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../support/fake-cuda-driver.ts';
import { changedRunner, driverRunner } from '../../tools/gpu/runners.ts';
import { Driver } from './support/engine-driver.ts';
import { grammarOf } from './support/positional-grammar.ts';
import { NEUTRAL, submission } from './support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from './support/synthetic-engine.ts';
import { ordered, transcribe } from './support/transcript.ts';

/** Logits that stay on a card until a sampler asks for them. The driver's card is main memory. */

const SLOTS = 6;
/** 23 whole blocks and a part of one. */
const VOCABULARY = 3000;
const TOKENS = 12;

/** Each runs beside the others of its line. */
const SAMPLINGS: readonly (readonly Partial<SamplingParameters>[])[] = [
  [{ temperature: 0 }, { temperature: 1 }, { temperature: 0.7 }, { temperature: 1.5 }],
  [{ topK: 40 }, { topP: 0.5 }, { minP: 0.3 }, { temperature: 0.7, topK: 200, topP: 0.9, minP: 0.01 }],
  [{ topP: 0.95, xtcProbability: 1, xtcThreshold: 0.001 }, { temperature: 1 }, { minKeep: 5, topK: 2 }],
  [
    { mirostat: 2 },
    { typicalP: 0.5 },
    { topNSigma: 1 },
    { dynatempRange: 0.5 },
    { temperature: 1 },
    { topK: 3 },
  ],
  [
    { frequencyPenalty: 1 },
    { logitBias: [[7, 5]] },
    { xtcProbability: 1, xtcThreshold: 0.001 },
    {},
    { topK: 3 },
  ],
  [{ allowedTokenIds: [4, 5, 2900] }, { repetitionPenalty: 1.5, temperature: 0 }, { topP: 0.2 }, {}],
  [
    { presencePenalty: 2, temperature: 0 },
    { logitBias: [[2999, 100]] },
    {
      logitBias: [
        [3, -100],
        [9, 2],
      ],
      topK: 20,
    },
  ],
];

const allIds = Array.from({ length: VOCABULARY }, (_, id) => id);
/**
 * The ids that each allows first: in few blocks, in all, and all of some blocks. At each later place they are
 * 37 higher.
 */
const GRAMMARS: Readonly<Record<string, readonly number[]>> = {
  few: [4, 900, 901, 2900, 2999],
  most: allIds.filter((id) => id % 7 > 0),
  half: allIds.slice(1000, 2500),
};
/** Two masks are more work than a tenant may do in a step. */
const UNITS_PER_MASK = 120_000;
const compile = async (name: string): Promise<CompiledGrammar> => {
  const idsAt = (place: number) => GRAMMARS[name]!.map((id) => (id + 37 * place) % VOCABULARY);
  const places = Array.from({ length: TOKENS }, (_, place) => idsAt(place));
  const { start } = grammarOf(places, VOCABULARY);
  return {
    start: (onWork) => {
      const constraint = start();
      const { mask } = constraint;
      constraint.mask = () => {
        onWork?.(UNITS_PER_MASK);
        return mask();
      };
      return constraint;
    },
  };
};

/** The card sums in float32, so logprobs differ in their last bits. */
const nearly = (expected: unknown): unknown =>
  JSON.parse(JSON.stringify(expected), (_, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? expect.closeTo(value, 4) : value,
  );

describe.runIf(hasCompiler)('rows that stay on the card', () => {
  let model: SyntheticEngine;
  let runner: ModelRunner;
  const kernel = new SimdKernel(2);
  const counted = { decodes: 0, fetches: 0, completed: 0 };
  const drawn = { asked: 0, tokens: 0 };

  beforeAll(() => {
    model = syntheticEngine({ vocabulary: VOCABULARY, contextLength: 128 });
    const options = { slots: SLOTS, prefillChunk: 16 };
    const allocate = (length: number) => kernel.allocate(length);
    const { directory } = model.data.model;
    runner = driverRunner(directory, options, buildFakeCudaDriver().file, undefined, allocate);
  });
  afterAll(() => runner.dispose());

  /**
   * The runner, with NaN where the card has brought nothing.
   * @param draws whether the card draws tokens
   */
  function observed(draws: boolean): ModelRunner {
    const inner = runner.sparse!;
    const counts = draws ? { decodes: 0, fetches: 0, completed: 0 } : counted;
    const sparse: SparseRows = {
      logits: inner.logits,
      draws: draws
        ? {
            drawn: (row) => {
              const token = inner.draws!.drawn(row);
              drawn.tokens += Number(token !== null);
              return token;
            },
          }
        : null,
      fetchWanted: () => {
        const fetched = inner.fetchWanted();
        counts.fetches += Number(fetched);
        return fetched;
      },
      complete: (row) => {
        counts.completed += Number(inner.logits.indexOf(row) >= 0);
        inner.complete(row);
      },
    };
    return changedRunner(runner, {
      sparse,
      decode: (batch) => {
        drawn.asked += batch.draws?.filter((draw) => draw !== null).length ?? 0;
        if (batch.coldness !== undefined) {
          counts.decodes++;
          inner.logits.memory.subarray(0, SLOTS * VOCABULARY).fill(Number.NaN);
        }
        return runner.decode(batch);
      },
    });
  }

  async function answers(requests: readonly Submission[], rows: 'whole' | 'sparse' | 'drawn') {
    const { tokenBytes, eosIds } = model.data;
    // One thread, which is never late: a late draw needs the whole row.
    const threads = { ...samplerThreads(2)!, threads: 1 };
    const isWhole = rows === 'whole';
    const pool = isWhole ? null : new SamplerPool(kernel, VOCABULARY, threads, runner.sparse!.logits.rows);
    const options = { kernel, pool, tokenBytes, eosIds, compile };
    const used = isWhole ? changedRunner(runner, { sparse: null }) : observed(rows === 'drawn');
    const driver = new Driver(used, options);
    for (const request of requests) driver.submit(request);
    // Grammars are compiled.
    await setImmediate();
    await driver.finish();
    return requests.map(({ requestId }) => ordered(transcribe(driver.eventsOf(requestId), 1)));
  }

  it.each(SAMPLINGS.map((line, at) => [at, line] as const))(
    'give the tokens and logprobs of whole rows, whatever their samplers read (line %i)',
    async (line, samplings) => {
      const requests = samplings.flatMap((sampling, at) =>
        [null, 3].map((topLogprobs) =>
          submission({
            requestId: `${at} ${topLogprobs}`,
            prompts: [{ tokens: Int32Array.of(1, 2, 3 + at + line), maxTokens: TOKENS }],
            sampling: { ...NEUTRAL, ...sampling, seed: 31 * line + at },
            topLogprobs,
            ignoreEos: true,
          }),
        ),
      );
      const expected = nearly(await answers(requests, 'whole'));
      expect(JSON.parse(JSON.stringify(await answers(requests, 'sparse')))).toEqual(expected);
      expect(JSON.parse(JSON.stringify(await answers(requests, 'drawn')))).toEqual(expected);
    },
  );

  it.each(Object.keys(GRAMMARS))(
    'give the tokens and logprobs of whole rows where a grammar allows %s ids',
    async (constraint) => {
      const { decodes, completed } = counted;
      const requests = SAMPLINGS.flat().map((sampling, at) =>
        submission({
          requestId: `${at}`,
          prompts: [{ tokens: Int32Array.of(1, 2, 3 + at), maxTokens: TOKENS }],
          sampling: { ...NEUTRAL, ...sampling, allowedTokenIds: null, seed: at },
          constraint,
          topLogprobs: at % 3 === 0 ? 3 : null,
          ignoreEos: true,
        }),
      );
      const expected = nearly(await answers(requests, 'whole'));
      expect(JSON.parse(JSON.stringify(await answers(requests, 'sparse')))).toEqual(expected);
      expect(JSON.parse(JSON.stringify(await answers(requests, 'drawn')))).toEqual(expected);
      expect(counted.decodes).toBeGreaterThanOrEqual(decodes + TOKENS - 1);
      expect(counted.completed).toBe(completed);
    },
  );

  it('are asked for at most three times a step, and seldom as a whole', () => {
    expect(counted.decodes).toBeGreaterThan(0);
    expect(counted.fetches).toBeGreaterThan(counted.decodes / 2);
    expect(counted.fetches).toBeLessThanOrEqual(3 * counted.decodes);
    expect(counted.completed).toBeLessThan(counted.decodes / 10);
  });

  it('are drawn from on the card, nearly always if it is asked', () => {
    expect(drawn.asked).toBeGreaterThan(1000);
    expect(drawn.tokens).toBeGreaterThan(0.9 * drawn.asked);
  });
});
