import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { samplerThreads } from '../../../origin/engine/thread/sampler-threads.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import type { DecodeBatch } from '../../../origin/model/model-runner.ts';
import { openLibrary } from '../../../origin/model/ort/ort-library.ts';
import type { GraphRunner } from '../../../origin/model/runner/device/graph-runner.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../support/fake-cuda-driver.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { changedRunner, lateRunner } from '../../tools/gpu/runners.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { anySubmission, NEUTRAL, submission } from './support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from './support/synthetic-engine.ts';
import { ordered, type Transcript, transcribe } from './support/transcript.ts';

/** Engines whose card begins decode runs before the last tokens are read. The card is main memory. */

const SLOTS = 6;
const VOCABULARY = 320;
const TOKENS = 12;
const STEPS = 60;

interface Arrival {
  readonly submission: Submission;
  readonly at: number;
  readonly abortAfter: number | null;
}

/**
 * A card draws all tokens of these. They end by number, token, text or time.
 * @param texts prompts of the same one begin with each other
 */
const plainOf = (texts: number): fc.Arbitrary<Submission> =>
  fc
    .record({
      tenantId: fc.constantFrom('a', 'a', 'b'),
      length: fc.integer({ min: 1, max: 40 }),
      text: fc.nat(texts - 1),
      maxTokens: fc.integer({ min: 1, max: 2 * TOKENS }),
      temperature: fc.constantFrom(0, 0.7, 1.5),
      topK: fc.constantFrom(0, 0, 5),
      frequencyPenalty: fc.constantFrom(0, 0, 0, 0.8),
      seed: fc.nat(1000),
      stop: fc.constantFrom<string[]>([], [], ['a'], ['e', '\n']),
      choices: fc.constantFrom(1, 1, 2),
      minTokens: fc.constantFrom(0, 0, 3),
      topLogprobs: fc.constantFrom(null, 2),
      maxGenerationMs: fc.constantFrom(undefined, undefined, 40),
    })
    .map(({ length, text, maxTokens, temperature, topK, frequencyPenalty, seed, ...fields }) =>
      submission({
        requestId: '',
        ...fields,
        maxGenerationMs: fields.maxGenerationMs,
        prompts: [
          { tokens: Int32Array.from({ length }, (_, at) => (at * 29 + text) % VOCABULARY), maxTokens },
        ],
        sampling: { ...NEUTRAL, temperature, topK, frequencyPenalty, seed },
      }),
    );

/** Their texts have nothing that `anySubmission` bans, so no request ends without a token to choose. */
const CONSTRAINTS: readonly WireConstraint[] = [
  { type: 'regex', value: '[0-9]{2,5}(-[0-9]+)*' },
  { type: 'choice', value: ['YES', 'NO', 'NONE', 'Δ'] },
  { type: 'gbnf', value: 'root ::= "(" root ")" | [A-Z]+' },
  { type: 'json_schema', value: { type: 'array', items: { type: 'integer' } } },
];

const any = fc
  .tuple(
    anySubmission(TOKENS),
    fc.constantFrom(null, null, ...CONSTRAINTS.map((wire) => JSON.stringify(wire))),
  )
  .map(([fields, constraint]): Submission => ({ ...fields, constraint, requestId: '' }));

const workload = (kinds: fc.Arbitrary<Submission>): fc.Arbitrary<Arrival[]> =>
  fc
    .array(
      fc.record({
        submission: kinds,
        at: fc.nat(STEPS / 2),
        abortAfter: fc.oneof(
          { weight: 5, arbitrary: fc.constant(null) },
          { weight: 1, arbitrary: fc.nat(20) },
        ),
      }),
      { minLength: 4, maxLength: 14, size: 'max' },
    )
    .map((list) =>
      list.map((arrival, index) => ({
        ...arrival,
        submission: { ...arrival.submission, requestId: `request ${index}` },
      })),
    );

/** Rows of a batch do not change the tokens; a run of other rows may change the last bits of logprobs. */
const nearly = (expected: unknown): unknown =>
  JSON.parse(JSON.stringify(expected), (_, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? expect.closeTo(value, 4) : value,
  );
const plainly = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe.runIf(hasCompiler)('an engine whose card begins runs before the last tokens are read', () => {
  let model: SyntheticEngine;
  let runner: GraphRunner;
  let fail: (error: number) => void;
  let vocabulary: GrammarVocabulary;
  const kernel = new SimdKernel(2);
  const runs = { begun: 0, all: 0, joining: 0, prompts: 0 };

  beforeAll(() => {
    model = syntheticEngine({ vocabulary: VOCABULARY, contextLength: 128 });
    vocabulary = new GrammarVocabulary(model.data.tokenBytes);
    const { file } = buildFakeCudaDriver();
    fail = openLibrary(file).func('fail_with', 'void', ['int']);
    const allocateLogits = (length: number) => kernel.allocate(length);
    const size = { slots: SLOTS, prefillChunk: 16 };
    runner = lateRunner(model.data.model.directory, size, file, { allocateLogits }) as GraphRunner;
    runner.addProbed({ joinsPrompts: true, maxPrefillChunks: 2 });
    expect(runner.runsAhead).toBe(true);
  });
  afterAll(() => runner.dispose());

  function count({ firstSlot, rows, tokens, positions, joining = [] }: DecodeBatch): void {
    runs.all++;
    const isBegun = (_: unknown, row: number) =>
      runner.hasBegun({ slot: firstSlot + row, token: tokens[row]!, position: positions[row]! });
    if (Array.from({ length: rows }).some(isBegun)) runs.begun++;
    if (joining.length > 0) runs.joining++;
  }

  /** @param ahead whether runs may begin early */
  function driverOf(ahead: boolean, stored = 0): Driver {
    const { tokenBytes, eosIds } = model.data;
    const threads = { ...samplerThreads(2)!, threads: 1 };
    const pool = new SamplerPool(kernel, VOCABULARY, threads, runner.sparse!.logits.rows);
    const used = changedRunner(runner, {
      decode: (batch) => {
        if (ahead) count(batch);
        return runner.decode({ ...batch, continues: ahead && batch.continues });
      },
      beginPrefill: (chunks) => {
        const begun = ahead ? runner.beginPrefill(chunks) : null;
        if (begun !== null) runs.prompts++;
        return begun;
      },
    });
    const prefixStoreBytes = storeBytes(runner, stored);
    const compile = (wire: string) => compileConstraint(JSON.parse(wire), vocabulary);
    return new Driver(used, { kernel, pool, tokenBytes, eosIds, compile, prefixStoreBytes });
  }

  async function play(driver: Driver, arrivals: readonly Arrival[], failAt = -1): Promise<Transcript[]> {
    for (let step = 0; step <= STEPS; step++) {
      for (const { submission, at } of arrivals) if (at === step) driver.submit(submission);
      for (const { submission, at, abortAfter } of arrivals)
        if (abortAfter !== null && at + abortAfter === step) driver.engine.abort(submission.requestId);
      fail(step === failAt ? 2 : 0);
      await driver.step();
    }
    fail(0);
    await driver.finish();
    return arrivals.map(({ submission }) =>
      transcribe(driver.eventsOf(submission.requestId), submission.choices),
    );
  }

  /** Everything that a client gets and is billed for. */
  const compare = async (arrivals: readonly Arrival[], stored: number) => {
    const [begun, waited] = [
      await play(driverOf(true, stored), arrivals),
      await play(driverOf(false, stored), arrivals),
    ];
    for (const [index, { submission, abortAfter }] of arrivals.entries()) {
      const [one, other] = [begun[index]!, waited[index]!];
      const isTimed = submission.maxGenerationMs !== undefined;
      if (abortAfter === null && !isTimed) {
        expect(one.end).toBeInstanceOf(Object);
        expect(plainly(ordered(one))).toEqual(nearly(ordered(other)));
        continue;
      }
      // What ends by time or abort may have got more in one of them.
      for (const [choice, { ids }] of one.choices) {
        const others = other.choices.get(choice)?.ids ?? [];
        const length = Math.min(ids.length, others.length);
        expect(ids.slice(0, length)).toEqual(others.slice(0, length));
      }
    }
  };

  it.each([
    ['that a card draws', plainOf(4), 32, 0.5],
    ['of every kind', any, 24, 0],
  ] as const)(
    'gives requests %s the tokens, logprobs and usage of one that waits',
    async (_, kinds, numRuns, share) => {
      Object.assign(runs, { begun: 0, all: 0, joining: 0, prompts: 0 });
      const property = fc.asyncProperty(workload(kinds), fc.constantFrom(0, 3, 1000), compare);
      await fc.assert(property, { numRuns });
      expect(runs.begun).toBeGreaterThan(share * runs.all);
      expect(runs.joining).toBeGreaterThan(0);
      expect(runs.prompts).toBeGreaterThan(0);
    },
  );

  it('fails the requests of a run that fails with the one that has begun, and sends no token twice', async () => {
    // A step then has two runs at most, and the engine ends after three that failed.
    runner.addProbed({ joinsPrompts: false });
    const arrivals = fc.sample(workload(plainOf(1000)), { seed: 5, numRuns: 12 });
    let failed = 0;
    for (const [failAt, list] of arrivals.entries()) {
      const whole = await play(driverOf(false), list);
      const transcripts = await play(driverOf(true), list, 3 * failAt + 4);
      for (const [index, transcript] of transcripts.entries()) {
        if (typeof transcript.end === 'string') failed++;
        for (const [choice, { ids }] of transcript.choices) {
          const others = whole[index]!.choices.get(choice)?.ids ?? [];
          const length = Math.min(ids.length, others.length);
          expect(ids.slice(0, length)).toEqual(others.slice(0, length));
        }
      }
    }
    expect(failed).toBeGreaterThan(10);
  });
});
