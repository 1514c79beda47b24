import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import { ApiError } from '../../../../shared/errors.ts';
import type { GenerationEvent } from '../../../../shared/generation.ts';
import { runs } from '../../../support/random.ts';
import type { SyntheticModel } from '../../../support/synthetic/llama-graph.ts';
import { Driver } from '../support/engine-driver.ts';
import { endless, shape } from '../support/long-requests.ts';
import { ScriptedRunner } from '../support/scripted-runner.ts';
import { NEUTRAL, submission } from '../support/submissions.ts';
import { type Part, picture, promptOf, visionEngine } from '../support/vision-engine.ts';

const greedy = { ...NEUTRAL, temperature: 0 };
const words = (count: number, from = 3): number[] =>
  Array.from({ length: count }, (_, i) => from + ((i * 37) % 200));

function asked(requestId: string, prompts: readonly (readonly Part[])[], fields: Partial<Submission> = {}) {
  return submission({
    requestId,
    prompts: prompts.map((parts) => promptOf(parts, 6)),
    sampling: greedy,
    ignoreEos: true,
    topLogprobs: 3,
    ...fields,
  });
}

/** Steps until all requests have ended; lets the encoder's results arrive. */
async function finish(driver: Driver): Promise<void> {
  for (let turn = 0; !driver.engine.idle || driver.engine.awaitsPreparation; turn++) {
    if (turn === 100_000) throw new Error('the engine does not come to an end');
    if (!driver.engine.idle) await driver.step();
    await setImmediate();
  }
  driver.engine.settle();
}

const tokensOf = (events: readonly GenerationEvent[], choice = 0) =>
  events.flatMap((event) =>
    event.type === 'token' && event.choice === choice ? (event.logprobs ?? []) : [],
  );
const startOf = (events: readonly GenerationEvent[]) => events.find(({ type }) => type === 'started');
const answer = (events: readonly GenerationEvent[]) =>
  events.filter(({ type }) => type === 'token' || type === 'finish');

function logSoftmax(row: Float64Array): Float64Array {
  const max = Math.max(...row);
  const sum = row.reduce((total, value) => total + Math.exp(value - max), 0);
  return row.map((value) => value - max - Math.log(sum));
}

const LAYOUTS: readonly [string, Partial<SyntheticModel>, number][] = [
  ['group-query attention', {}, 2e-5],
  ['a concatenated past', { attention: 'concatenated', positionIds: true }, 2e-5],
  ['a merged decoder', { attention: 'merged', positionIds: true }, 2e-5],
  [
    'a merged decoder with one-token decode steps',
    { attention: 'merged', positionIds: true, cachedBranch: 'one-token' },
    2e-5,
  ],
];

it.each(LAYOUTS)('tokens and logprobs agree with a float64 forward pass: %s', async (_, model, tolerance) => {
  const vision = await visionEngine(model);
  const prompts = [
    [...words(3), picture(1), ...words(4, 50)],
    // Images across the ends of chunks of 16, two in a row, at the start and at the end.
    [picture(2), ...words(2), picture(3), picture(1), ...words(11)],
    [...words(20), picture(4)],
    words(5),
  ];
  const driver = vision.driver();
  driver.submit(asked('r', prompts));
  await finish(driver);
  for (const [choice, prompt] of prompts.entries()) {
    const parts: Part[] = [...prompt];
    const generated = tokensOf(driver.eventsOf('r'), choice);
    expect(generated).toHaveLength(6);
    for (const { id, logprob } of generated) {
      const expected = logSoftmax(vision.reference(parts).at(-1)!);
      expect(id).toBe(expected.indexOf(Math.max(...expected)));
      expect(Math.abs(logprob! - expected[id]!)).toBeLessThan(tolerance);
      parts.push(id);
    }
  }
  vision.close();
});

describe('requests with images', () => {
  let vision: Awaited<ReturnType<typeof visionEngine>>;
  beforeAll(async () => {
    vision = await visionEngine();
  });
  afterAll(() => vision.close());

  it('have the same output beside others, with a warm or cold cache', async () => {
    const part = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(5, 6) },
      { weight: 1, arbitrary: fc.constantFrom(1, 2).map(picture) },
    );
    const prompt = fc
      .tuple(fc.constantFrom(0, 16, 20), fc.array(part, { minLength: 1, maxLength: 6 }))
      .map(([shared, rest]): Part[] => [...words(shared), ...rest]);
    let reused = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(prompt, { minLength: 2, maxLength: 8 }), async (several) => {
        // Repeats the first prompt, so that there is always a prefix to reuse.
        const prompts = [...several, ...several.slice(0, 1)];
        const together = vision.driver();
        for (const [index, one] of prompts.entries()) {
          together.submit(asked(`${index}`, [one]));
          if (index % 2 === 0) await finish(together);
        }
        await finish(together);
        for (const [index, one] of prompts.entries()) {
          const events = together.eventsOf(`${index}`);
          const alone = vision.driver();
          alone.submit(asked('alone', [one]));
          await finish(alone);
          expect(answer(events)).toEqual(answer(alone.eventsOf('alone')));
          const start = startOf(events);
          if (start?.type === 'started' && start.cachedTokens > 0) reused++;
        }
      }),
      { numRuns: runs(15) },
    );
    expect(reused).toBeGreaterThanOrEqual(runs(3));
  });

  it('encode an image once and reuse its KV; with another image they share only the prefix before it', async () => {
    const driver = vision.driver();
    const before = vision.encoded();
    const cachedTokens: number[] = [];
    const ask = async (requestId: string, seed: number, fields: Partial<Submission> = {}) => {
      driver.submit(asked(requestId, [[...words(18), picture(seed), ...words(30)]], fields));
      await finish(driver);
      const start = startOf(driver.eventsOf(requestId));
      if (start?.type === 'started') cachedTokens.push(start.cachedTokens);
    };
    await ask('first', 1);
    await ask('again', 1);
    await ask('other', 2);
    expect(vision.encoded() - before).toBe(2);
    await ask('other tenant', 1, { tenantId: 'other tenant', cacheNamespace: 'other tenant' });
    await ask('uncached', 1, { cachePrompt: false });
    expect(vision.encoded() - before).toBe(4);
    expect(cachedTokens).toEqual([0, 48, 16, 0, 0]);
    expect(tokensOf(driver.eventsOf('first'))).toEqual(tokensOf(driver.eventsOf('uncached')));
    expect(tokensOf(driver.eventsOf('first'))).not.toEqual(tokensOf(driver.eventsOf('other')));
  });

  it('count image positions as prompt tokens, once for all choices', async () => {
    const driver = vision.driver();
    driver.submit(asked('r', [[5, picture(1), 6]], { choices: 3, sampling: NEUTRAL }));
    await finish(driver);
    const done = driver.eventsOf('r').at(-1);
    expect(done).toMatchObject({ type: 'done', usage: { promptTokens: 11, completionTokens: 18 } });
  });

  it('do not delay streams while their images are encoded, and send nothing once aborted', async () => {
    const driver = vision.driver();
    driver.submit(asked('stream', [words(4)], { prompts: [promptOf(words(4), 40)] }));
    await driver.step();
    driver.submit(asked('image', [[picture(7), 5]]));
    driver.submit(asked('aborted', [[picture(8), 5]]));
    driver.engine.abort('aborted');
    const generated = () => driver.eventsOf('stream').findLast(({ type }) => type === 'token');
    expect(generated()).toMatchObject({ completionTokens: 2 });
    for (let step = 0; step < 3; step++) await driver.step();
    expect(generated()).toMatchObject({ completionTokens: 5 });
    await finish(driver);
    expect(driver.eventsOf('image').at(-1)?.type).toBe('done');
    expect(driver.eventsOf('aborted')).toEqual([]);
  });
});

describe('images that cannot be encoded', () => {
  it.each([
    ['upstream_error', true],
    ['invalid_value', false],
  ] as const)('fail their request with %s, retryable: %s', async (code, retryable) => {
    const encodeImages = () => Promise.reject(new ApiError(code, 'no'));
    const driver = new Driver(new ScriptedRunner(shape(1)), { encodeImages });
    const image = { at: 0, count: 1, key: 'picture', pixels: new Float32Array(1) };
    const { prompts, ...fields } = endless('r', 5);
    driver.submit({ ...fields, prompts: prompts.map((prompt) => ({ ...prompt, images: [image] })) });
    while (driver.engine.awaitsPreparation) await setImmediate();
    await driver.finish();
    expect(driver.eventsOf('r')).toMatchObject([{ type: 'error', code, retryable }]);
  });
});
