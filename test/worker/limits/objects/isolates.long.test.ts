import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { tokenLimitNumber } from '../../../../shared/sampling.ts';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import type { Script } from '../../support/fake-origin.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../../support/scripts.ts';
import { ISOLATES, open, Stage, takeAll } from '../../support/stage.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';

const { worker, origin } = workerForTests(
  { ADMIN_KEY_SHA256, MODELS_TTL_MS: '5000' },
  { entry: 'test/worker/support/entries/distant-limiter.ts' },
);

/** Micro-units: 1 per prompt token, 3 per completion token. */
beforeAll(() =>
  admin(worker, 'POST', '/prices', {
    model: 'org/tiny',
    prompt_micros: 1_000_000,
    completion_micros: 3_000_000,
  }),
);

async function ask(
  key: string,
  isolate: string,
  fields: Readonly<Record<string, unknown>> = {},
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 4, ...fields };
  const headers = { authorization: `Bearer ${key}`, 'x-isolate': isolate, ...more };
  const response = await worker.post(body, { headers });
  await response.text();
  return response;
}

const passed = (answers: readonly { readonly status: number }[]) =>
  answers.filter(({ status }) => status === 200).length;

/** Sends two requests, after which the isolate holds a slice of this key. */
const warm = async (key: string, fields = {}) => {
  await ask(key, 'a', fields);
  await ask(key, 'a', fields);
};

const wave = (key: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => ask(key, ISOLATES[index % ISOLATES.length]!)));

describe('limits in several isolates', () => {
  test('admits exactly 100 of 300 parallel requests from three isolates with a limit of 100', async () => {
    const { key } = await tenantWithKey(worker, 'many', { requests_per_minute: 100 });
    let count = passed(await wave(key, 30));
    expect(count).toBe(30);
    count += passed(await wave(key, 300));
    expect(count).toBeLessThanOrEqual(100);
    // Other isolates cannot use what one isolate holds unused. It returns to the object later.
    await eventually(
      async () => {
        count += passed(await wave(key, 6));
        return count;
      },
      (now) => now >= 100,
    );
    expect(passed(await wave(key, 30))).toBe(0);
    expect([count, origin.requests.length]).toEqual([100, 100]);
    const { body } = await eventually(
      () => admin(worker, 'GET', '/usage?tenant=many'),
      (answer) => answer.body.total.requests === 100,
    );
    expect(body.total).toMatchObject({ requests: 100, completed: 100, prompt_tokens: 200 });
  });

  test('never exceeds a token limit with 90 parallel prompts that have more tokens than estimated', async () => {
    const { key } = await tenantWithKey(worker, 'dense', { tokens_per_day: 2000 });
    const dense = (index: number) => ask(key, ISOLATES[index % ISOLATES.length]!, { prompt: 'x'.repeat(40) });
    const served = passed(await Promise.all(Array.from({ length: 90 }, (_, index) => dense(index))));
    expect(served).toBeGreaterThan(0);
    const { body } = await eventually(
      () => admin(worker, 'GET', '/usage?tenant=dense'),
      (answer) => answer.body.total.completed === served,
    );
    expect(body.total).toMatchObject({ prompt_tokens: 40 * served, completion_tokens: 4 * served });
    expect(44 * served).toBeLessThanOrEqual(2000);
  });

  /**
   * Generates two tokens per millisecond, up to max_tokens, for as long as the Worker reads, once so many
   * requests have been accepted: a later one could find nothing left.
   */
  const generateFor = (requests: number): Script => {
    const all = Promise.withResolvers<void>();
    let accepted = 0;
    return async (request, wire) => {
      wire.send(...acceptedFor(request));
      accepted += 1;
      if (accepted === requests) all.resolve();
      await all.promise;
      await generate(request, wire);
    };
  };
  const generate: Script = async (request, wire) => {
    const maxTokens = tokenLimitNumber(request.maxTokens);
    let count = 0;
    while (count < maxTokens && !wire.gone()) {
      const tokens = Array.from({ length: 20 }, () => tokenEvent((count += 1), 'x'));
      wire.send(...tokens);
      await sleep(10);
    }
    if (wire.gone()) return;
    wire.send(finishOf(0, 'length', count), doneFor(request, count));
    wire.end();
  };

  test.each([
    ['streams', true, 'a budget', 64 * 1_002],
    ['plain requests', false, 'a budget', 64 * 1_002],
    ['streams', true, 'a balance', 64 * 3_002],
    ['plain requests', false, 'a balance', 64 * 3_002],
  ])(
    '128 %s (%j) in three isolates use %s for half of them, and no more',
    async (_, stream, kind, budget) => {
      const isMoney = kind === 'a balance';
      const tenant = `half-${stream}-${isMoney}`;
      const { key } = await tenantWithKey(worker, tenant, isMoney ? {} : { tokens_per_day: budget });
      if (isMoney) await admin(worker, 'POST', '/credits', { tenant, id: 'all', micros: budget });
      origin.script = generateFor(128);
      const fields = {
        max_tokens: 1_000,
        stream,
        ...(stream ? { stream_options: { include_usage: true } } : {}),
      };
      const answers = await Promise.all(
        Array.from({ length: 128 }, (_, index) => ask(key, ISOLATES[index % ISOLATES.length]!, fields)),
      );
      origin.reset();
      expect(passed(answers)).toBe(128);
      const { body } = await eventually(
        () => admin(worker, 'GET', `/usage?tenant=${tenant}`),
        (answer) => answer.body.total.completed === 128,
      );
      const { prompt_tokens: prompt = 0, completion_tokens: completion = 0, finish_length: cut } = body.total;
      expect(body.total.cost_micros).toBe(prompt + 3 * completion);
      const used = isMoney ? prompt + 3 * completion : prompt + completion;
      expect(used).toBeLessThanOrEqual(budget);
      expect(used / budget).toBeGreaterThanOrEqual(0.99);
      expect(cut).toBe(128);
    },
  );

  test('an isolate that holds a slice ends the streams of a key that another isolate has revoked, and admits no more', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'revoked', { requests_per_minute: 8000 });
    await warm(key);
    const stage = new Stage(origin);
    const headers = { authorization: `Bearer ${key}`, 'x-isolate': 'a' };
    const stream = await worker.post(
      { model: 'org/tiny', prompt: 'Hi', max_tokens: 2000, stream: true },
      { headers },
    );
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    expect(await stream.text()).toContain('invalid_api_key');
    stage.endAll();
    origin.reset();
    await eventually(
      () => ask(key, 'a'),
      ({ status }) => status === 401,
    );
    expect((await ask(key, 'a')).status).toBe(401);
  });

  test('runs exactly as many requests as slots, frees every slot and bills exactly', async () => {
    const slots = 20;
    const { key } = await tenantWithKey(worker, 'slots', { concurrent_requests: slots });
    const stage = new Stage(origin);
    for (let round = 1; round <= 3; round += 1) {
      const taken = await takeAll(worker, key, slots);
      // No isolate admits another request.
      expect(await open(worker, key, 30)).toEqual([]);
      expect([taken.length, stage.running, stage.most]).toEqual([slots, slots, slots]);
      stage.endAll();
      const texts = await Promise.all(taken.map((response) => response.text()));
      expect(texts.filter((text) => text.endsWith('data: [DONE]\n\n'))).toHaveLength(slots);
    }
    const { requests, promptTokens, completionTokens } = stage.generated();
    expect(requests).toBe(3 * slots);
    const { body } = await eventually(
      () => admin(worker, 'GET', '/usage?tenant=slots'),
      (answer) => answer.body.total.requests === requests,
    );
    expect(body.total).toMatchObject({
      requests,
      completed: requests,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
    });
  });
});

describe('a slice while the clock stands', () => {
  // Idle slices return to the object: on a busy machine, two requests may be as far apart.
  const START = Date.UTC(2100, 0, 1);
  const turnClock = (ms: number) => worker.request('/health', { headers: { 'x-now': String(START + ms) } });
  beforeAll(() => turnClock(0));
  const calls = async () =>
    (await (await worker.request('/calls')).json()) as { readonly all: number; readonly waitedFor: number };
  const waitedFor = async () => (await calls()).waitedFor;
  const remainingOf = ({ headers }: Response) => headers.get('x-ratelimit-remaining-requests');

  test('admits from a slice without the object, and reports the remaining amounts', async () => {
    const { key } = await tenantWithKey(worker, 'near', { requests_per_minute: 800 });
    const before = await waitedFor();
    await warm(key);
    expect(await waitedFor()).toBe(before + 2);
    const third = await ask(key, 'a');
    expect(await waitedFor()).toBe(before + 2);
    expect(remainingOf(third)).toBe('797');
    expect(third.headers.get('x-ratelimit-reset-requests')).toMatch(/^[\d.]+s$|^1m0s$/);
  });

  test('asks the object about no prompt that the slice pays for, whatever its tokens are', async () => {
    const { key } = await tenantWithKey(worker, 'raised', { tokens_per_day: 60_000 });
    await warm(key, { prompt: [1] });
    const before = await waitedFor();
    await ask(key, 'a', { prompt: [1, 2, 3, 4] });
    // The whole context is reserved.
    await ask(key, 'a', { prompt: 'x'.repeat(40), max_tokens: -1 });
    expect((await ask(key, 'a', { prompt: 'x'.repeat(40) })).status).toBe(200);
    expect(await waitedFor()).toBe(before);
  });

  test('charges nothing for a rejected body and shows its limits, with and without a slice', async () => {
    const { key } = await tenantWithKey(worker, 'told', { requests_per_minute: 800 });
    const left = async (fields: Readonly<Record<string, unknown>>) => {
      const answer = await ask(key, 'a', fields);
      return [answer.status, remainingOf(answer)];
    };
    expect(await left({ n: 0 })).toEqual([400, '800']);
    await warm(key);
    expect(await left({ n: 0 })).toEqual([400, '798']);
    expect(await left({})).toEqual([200, '797']);
  });

  test('makes few calls at a steady load, and none after it', async () => {
    const { key } = await tenantWithKey(worker, 'steady', { requests_per_minute: 80_000 });
    await warm(key);
    const begun = performance.now();
    const before = (await calls()).all;
    const [rounds, asked] = [10, 50];
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(Array.from({ length: asked }, () => ask(key, 'a')));
    }
    const made = (await calls()).all - before;
    // One per 100 ended requests, and one per pause and round trip: on a fast machine up to 40 a second.
    const elapsed = performance.now() - begun;
    expect(made).toBeLessThan(Math.max((rounds * asked) / 10, 10 + elapsed / 200));
    // While the clock stands, the object sees all calls in one moment, and lets isolates take turns.
    await turnClock(9_000);
    await eventually(
      () => ask(key, 'b', { n: 0 }),
      (answer) => remainingOf(answer) === '79498',
    );
    const isStill = async () => {
      const first = (await calls()).all;
      await sleep(1500);
      return (await calls()).all === first;
    };
    await eventually(isStill, (still) => still);
  });
});
