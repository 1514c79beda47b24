import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { samplerThreads } from '../../../origin/engine/thread/sampler-threads.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import { isLargeVocabulary } from '../../../origin/sampling/row.ts';
import { Driver, storeBytes } from './support/engine-driver.ts';
import { anySubmission, submission } from './support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from './support/synthetic-engine.ts';
import { ordered, transcribe } from './support/transcript.ts';

/** Batch invariance on ONNX Runtime: each request gets the bits that it gets in a separate cold engine. */
describe.each([
  ['fp32', { quantization: 'none' }, 6],
  ['4-bit', { quantization: 'q4' }, 6],
  ['8-bit', { quantization: 'q8' }, 6],
  ['4-bit, full-precision', { quantization: 'q4', accuracyLevel: 0 }, 4],
  ['8-bit, full-precision', { quantization: 'q8', accuracyLevel: 0 }, 4],
  // Fewer rounds, because their rows run one by one.
  ['row-coupling int8', { quantization: 'int8-dynamic' }, 4],
  ['concatenated-past', { attention: 'concatenated', positionIds: true }, 4],
  // Its logits are reduced in blocks, and several threads draw its tokens.
  ['large-vocabulary', { quantization: 'q8', vocabulary: 33_000 }, 2],
] as const)('a request to a %s model', (_, options, rounds) => {
  let model: SyntheticEngine;
  let runner: ModelRunner;
  let kernel: SimdKernel;
  let pool: SamplerPool | null;

  beforeAll(async () => {
    model = syntheticEngine(options, { slots: 6, prefillChunk: 16 });
    const threads = samplerThreads(3)!;
    kernel = new SimdKernel(threads.threads, threads.viewMemory);
    ({ runner } = await openModel(model.data.model, (length) => kernel.allocate(length)));
    const { vocabularySize } = model;
    pool = isLargeVocabulary(vocabularySize) ? new SamplerPool(kernel, vocabularySize, threads) : null;
  });
  afterAll(() => runner.dispose());

  const driver = (prefixStoreBytes = 0) =>
    new Driver(runner, {
      prefixStoreBytes,
      kernel,
      pool,
      tokenBytes: model.data.tokenBytes,
      eosIds: model.data.eosIds,
    });

  async function alone(submission: Submission): Promise<unknown> {
    const engine = driver();
    engine.submit(submission);
    await engine.finish();
    return ordered(transcribe(engine.eventsOf(submission.requestId), submission.choices));
  }

  it.each([1, 16, 41])(
    'has the same output if its prompt of %i tokens was computed before',
    async (length) => {
      const tokens = Int32Array.from({ length }, (_, at) => (at * 29) % 320);
      const one = submission({
        requestId: '',
        prompts: [{ tokens, maxTokens: 8 }],
        choices: 2,
        topLogprobs: 5,
      });
      const engine = driver(storeBytes(runner, 100));
      for (const requestId of ['first', 'second', 'third']) engine.submit({ ...one, requestId });
      await engine.finish();
      engine.submit({ ...one, requestId: 'last' });
      await engine.finish();
      for (const requestId of ['second', 'third', 'last']) {
        const events = engine.eventsOf(requestId);
        expect(events.at(-1)).toMatchObject({ usage: { cachedTokens: length } });
        expect(ordered(transcribe(events, 2))).toEqual(await alone({ ...one, requestId }));
      }
    },
  );

  it('has the same output in any slot, in any batch, with a warm or cold cache', async () => {
    let requests = 0;
    const workload = fc.array(fc.record({ submission: anySubmission(12), at: fc.nat(40) }), {
      minLength: 8,
      maxLength: 16,
      size: 'max',
    });
    await fc.assert(
      fc.asyncProperty(workload, fc.constantFrom(0, 3, 1000), async (arrivals, stored) => {
        const engine = driver(storeBytes(runner, stored));
        const named = arrivals.map(({ submission, at }, index) => ({
          submission: { ...submission, requestId: `${index}` },
          at,
        }));
        for (let step = 0; step <= 40; step++) {
          for (const { submission, at } of named) if (at === step) engine.submit(submission);
          await engine.step();
        }
        await engine.finish();
        for (const { submission } of named) {
          requests++;
          const together = transcribe(engine.eventsOf(submission.requestId), submission.choices);
          expect(ordered(together)).toEqual(await alone(submission));
        }
      }),
      { numRuns: rounds },
    );
    expect(requests).toBeGreaterThan(7 * rounds);
  });
});
