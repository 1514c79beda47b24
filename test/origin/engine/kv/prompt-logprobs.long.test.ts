import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { Driver, storeBytes } from '../support/engine-driver.ts';
import { submission } from '../support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from '../support/synthetic-engine.ts';
import { ordered, transcribe } from '../support/transcript.ts';

const CHUNK = 16;
const ALL_TOPS = Array.from({ length: 21 }, (_, top) => top);

/** Logprobs of prompts on ONNX Runtime: the prefix store gives the bits of an engine that keeps nothing. */
describe.each([
  ['fp32', { quantization: 'none' }, 12],
  ['float16', { precision: 'float16' }, 6],
  ['4-bit', { quantization: 'q4' }, 6],
  ['row-coupling int8', { quantization: 'int8-dynamic' }, 4],
  ['concatenated-past', { attention: 'concatenated', positionIds: true }, 6],
] as const)('a scored prompt of a %s model', (_, options, rounds) => {
  let model: SyntheticEngine;
  let runner: ModelRunner;

  beforeAll(async () => {
    model = syntheticEngine(options, { slots: 2, prefillChunk: CHUNK });
    ({ runner } = await openModel(model.data.model));
  });
  afterAll(() => runner.dispose());

  /** @param chunks that fit into the prefix store */
  const driver = (chunks: number) =>
    new Driver(runner, {
      prefixStoreBytes: storeBytes(runner, chunks),
      tokenBytes: model.data.tokenBytes,
      eosIds: model.data.eosIds,
    });
  const output = (engine: Driver, { requestId, choices }: Submission) =>
    ordered(transcribe(engine.eventsOf(requestId), choices));

  async function uncached(one: Submission): Promise<unknown> {
    const engine = driver(0);
    engine.submit({ ...one, cachePrompt: false });
    await engine.finish();
    return output(engine, one);
  }

  const scored = (requestId: string, tokens: Int32Array, top: number | null, fields: object = {}) =>
    submission({
      requestId,
      prompts: [{ tokens, maxTokens: 1 }],
      promptTopLogprobs: top,
      topLogprobs: top,
      echo: true,
      ...fields,
    });
  const cachedTokens = (engine: Driver, requestId: string) => {
    const last = engine.eventsOf(requestId).at(-1);
    return last?.type === 'done' ? last.usage.cachedTokens : null;
  };

  it('computes what is not stored only, at every boundary, for few and for many top tokens', async () => {
    const engine = driver(1000);
    const tokens = Int32Array.from({ length: 3 * CHUNK + 3 }, (_, at) => (at * 37) % 320);
    engine.submit(scored('first', tokens, 0));
    await engine.finish();
    expect(cachedTokens(engine, 'first')).toBe(0);
    for (const [at, top] of [0, 1, 2, 5, 19, 20].entries()) {
      // Every length once, and those around the boundaries for every count.
      for (let length = 1; length <= tokens.length; length++) {
        const [over, under] = [length % CHUNK, CHUNK - (length % CHUNK)];
        if (over > 2 && under > 1 && length % 6 !== at) continue;
        const one = scored(`${length} ${top}`, tokens.subarray(0, length), top);
        engine.submit(one);
        await engine.finish();
        expect(output(engine, one)).toEqual(await uncached(one));
        const stored = length - 1 - ((length - 1) % CHUNK);
        expect(cachedTokens(engine, one.requestId)).toBe(stored);
      }
    }
  });

  it.each([1, CHUNK, 2 * CHUNK + 3])(
    'computes nothing of %i tokens that were scored before',
    async (length) => {
      const engine = driver(1000);
      const tokens = Int32Array.from({ length }, (_, at) => (at * 43) % 320);
      const only = (requestId: string, top: number) =>
        scored(requestId, tokens, top, { prompts: [{ tokens, maxTokens: 0 }] });
      for (const one of [only('first', 3), ...ALL_TOPS.map((top) => only(`top ${top}`, top))]) {
        engine.submit(one);
        await engine.finish();
        expect(output(engine, one)).toEqual(await uncached(one));
        expect(cachedTokens(engine, one.requestId)).toBe(one.requestId === 'first' ? 0 : length);
      }
    },
  );

  it('has the same bits whichever token follows a stored chunk', async () => {
    const cached = new Set<number | null>();
    for (const top of ALL_TOPS) {
      const engine = driver(1000);
      const tokens = Int32Array.from({ length: 2 * CHUNK + 2 }, (_, at) => (at * 41) % 320);
      engine.submit(scored('first', tokens, 20));
      await engine.finish();
      const prompts = engine.eventsOf('first').find(({ type }) => type === 'prompt');
      const likely = prompts?.type === 'prompt' ? prompts.logprobs?.[2 * CHUNK]?.topLogprobs : null;
      for (const next of [likely![top % 20]![0], (top * 15) % 320]) {
        const one = scored(`${top} ${next}`, Int32Array.of(...tokens.subarray(0, 2 * CHUNK), next), top);
        engine.submit(one);
        await engine.finish();
        expect(output(engine, one)).toEqual(await uncached(one));
        cached.add(cachedTokens(engine, one.requestId));
      }
    }
    expect(cached).toEqual(new Set([CHUNK, 2 * CHUNK]));
  });

  it('has the same bits whichever chunks are stored, scored or evicted', async () => {
    const arrival = fc.record({
      length: fc.oneof(fc.integer({ min: 1, max: 3 * CHUNK }), fc.constant(3 * CHUNK + 2)),
      // Prompts of a family are equal up to the position at which they leave it.
      family: fc.constantFrom(0, 0, 1, 2),
      leavesAt: fc.oneof(fc.constant(3 * CHUNK), fc.nat(3 * CHUNK)),
      top: fc.option(fc.constantFrom(...ALL_TOPS), { freq: 3 }),
      logprobsFrom: fc.oneof(fc.constant(0), fc.nat(3 * CHUNK)),
      maxTokens: fc.nat(2),
      choices: fc.constantFrom(1, 1, 2),
      cachePrompt: fc.constantFrom(true, true, true, false),
      tenantId: fc.constantFrom('a', 'a', 'b'),
      waits: fc.boolean(),
    });
    let restored = 0;
    let evicted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(arrival, { minLength: 10, maxLength: 20, size: 'max' }),
        fc.constantFrom(2, 4, 7, 10, 1000),
        async (arrivals, chunks) => {
          const engine = driver(chunks);
          const requests: Submission[] = [];
          for (const [index, { length, family, leavesAt, top, ...fields }] of arrivals.entries()) {
            const { maxTokens, waits, choices, cachePrompt, tenantId } = fields;
            const logprobsFrom = Math.min(fields.logprobsFrom, length - 1);
            const changed = (at: number) => family * 11 + (at < leavesAt ? 0 : 7);
            const tokens = Int32Array.from({ length }, (_, at) => (at * 31 + changed(at)) % 320);
            const one = scored(`${index}`, tokens, top, {
              prompts: [{ tokens, maxTokens, logprobsFrom }],
              choices,
              cachePrompt,
              tenantId,
              cacheNamespace: tenantId,
            });
            requests.push(one);
            engine.submit(one);
            if (waits) await engine.finish();
          }
          await engine.finish();
          for (const one of requests) {
            expect(output(engine, one)).toEqual(await uncached(one));
            if (!one.cachePrompt && one.choices === 1) expect(cachedTokens(engine, one.requestId)).toBe(0);
          }
          restored += engine.engine.status.prefixStore?.restoredTokens ?? 0;
          evicted += engine.engine.status.prefixStore?.evictedChunks ?? 0;
        },
      ),
      { numRuns: 2 * rounds },
    );
    expect(restored).toBeGreaterThan(rounds * CHUNK);
    expect(evicted).toBeGreaterThan(2 * rounds);
  });
});
