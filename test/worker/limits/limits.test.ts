import { describe, expect, test } from 'vitest';
import { runs } from '../../support/random.ts';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { reset, sendRaw } from '../support/raw-request.ts';
import { acceptedFor, defaultScript, doneFor, finishOf, holdRequests } from '../support/scripts.ts';
import { withinOne } from '../support/within-one.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({
  ADMIN_KEY_SHA256,
  MODELS_TTL_MS: '5000',
  KEEP_ALIVE_MS: '200',
  // Longer than a test waits, so that no reservation expires.
  RESERVATION_TTL_MS: '600000',
});

const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

/** The environment selects a longer run. */
const KILLS = Number(process.env.TEST_KILLS ?? runs(60));

describe('limits over HTTP', () => {
  test('admits exactly 50 of 200 parallel requests with a limit of 50 per minute', async () => {
    const { key } = await tenantWithKey(worker, 'rpm', { requests_per_minute: 50 });
    const answers = await times(200, () => completion(worker, key));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(50);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(150);
    expect(origin.requests).toHaveLength(50);
    const { headers, body } = refused[0]!;
    expect(body.error).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded', param: null });
    expect(body.error.message).toMatch(
      /^Rate limit reached for org\/tiny in tenant rpm on requests per min \(RPM\): Limit 50, Used 50, Requested 1\. Please try again in .+\.$/,
    );
    expect(headers.get('x-should-retry')).toBe('true');
    const ms = Number(headers.get('retry-after-ms'));
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThanOrEqual(60_000);
    expect(headers.get('retry-after')).toBe(String(Math.ceil(ms / 1000)));
    expect(headers.get('x-ratelimit-remaining-requests')).toBe('0');
  });

  test('reports the remaining amounts, and corrects them after settlement', async () => {
    const { key } = await tenantWithKey(worker, 'tpm', { requests_per_minute: 9, tokens_per_minute: 100 });
    const first = await completion(worker, key, { max_tokens: 90, prompt: [1] });
    expect(first.headers.get('x-ratelimit-limit-tokens')).toBe('100');
    expect(first.headers.get('x-ratelimit-remaining-tokens')).toBe('9');
    expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('8');
    expect(first.headers.get('x-ratelimit-reset-tokens')).toMatch(/^(\d+m)?[\d.]+s$|^\d+ms$/);
    await eventually(
      () => admin(worker, 'GET', '/usage?tenant=tpm'),
      ({ body }) => body.total.requests === 1,
    );
    // The request used 1 prompt token and 8 generated tokens of the 91 reserved.
    const next = await completion(worker, key, { max_tokens: 1, prompt: [1] });
    expect(next.headers.get('x-ratelimit-remaining-tokens')).toBe('89');
  });

  test.each([
    ['tokens_per_day', 100, /Limit 100, Used 0, Requested 1001, of which 257 must be left at the start\.$/],
    [
      'tokens_per_minute',
      100,
      /Limit 100, Used 0, Requested 1001, of which 257 must be left at the start\. The/,
    ],
    ['tokens_per_day', 4, /Limit 4, Used 0, Requested 101\.$/],
  ])(
    'a refusal by %s %i says what the request asked for, and what it needs at the start',
    async (name, limit, message) => {
      const { key } = await tenantWithKey(worker, `told-${name.replaceAll('_', '-')}-${limit}`, {
        [name]: limit,
      });
      const { body } = await completion(worker, key, { max_tokens: limit === 4 ? 100 : 1_000 });
      expect(body.error.message).toMatch(message);
    },
  );

  test.each([
    ['a stream', true],
    ['a plain request', false],
  ])('never exceeds a token limit if the text of %s has more tokens than estimated', async (_, stream) => {
    const tenant = `dense-${stream}`;
    const { key } = await tenantWithKey(worker, tenant, { tokens_per_day: 1000 });
    // Estimated at 10 tokens; the scripted tokenizer counts 40.
    const body = { model: 'org/tiny', prompt: 'x'.repeat(40), max_tokens: 8, stream };
    const answers = await times(50, () => worker.post(body, { headers: { authorization: `Bearer ${key}` } }));
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    const served = answers.filter(({ status }) => status === 200).length;
    expect(served).toBeGreaterThan(0);
    expect(served).toBeLessThanOrEqual(Math.floor(1000 / 48));
    const refused = texts.filter((_, index) => answers[index]!.status !== 200);
    const messages = refused.map((text) => {
      const { error } = JSON.parse(text) as { error: { code: string; message: string } };
      // Running requests could still give back what is missing.
      expect(error.code).toMatch(/^(?:insufficient_quota|rate_limit_exceeded)$/);
      return error.message;
    });
    // A request that arrives after many counted ones is refused with its estimate.
    for (const message of messages) expect(message).toMatch(/Limit 1000, .* Requested (?:18|30)\./);
    expect(messages.some((message) => message.includes(' Requested 30.'))).toBe(true);
    const { body: usage } = await eventually(
      () => admin(worker, 'GET', `/usage?tenant=${tenant}`),
      (answer) => answer.body.total.completed === served,
    );
    expect(usage.total).toMatchObject({ prompt_tokens: 40 * served, completion_tokens: 8 * served });
  });

  test('refuses a prompt with more tokens than estimated, with the exact time to wait, and frees its slot', async () => {
    const limits = { tokens_per_minute: 60, concurrent_requests: 1 };
    const { key } = await tenantWithKey(worker, 'dense-wait', limits);
    const dense = { prompt: 'x'.repeat(40), max_tokens: 8 };
    expect((await completion(worker, key, dense)).status).toBe(200);
    const answer = await completion(worker, key, { ...dense, max_tokens: 1 });
    expect([answer.status, answer.body.error.type]).toEqual([429, 'tokens']);
    const ms = Number(answer.headers.get('retry-after-ms'));
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThanOrEqual(60_000);
    expect(answer.headers.get('x-ratelimit-limit-tokens')).toBe('60');
    const small = () => completion(worker, key, { prompt: 'Hi', max_tokens: 1 });
    await eventually(small, ({ status }) => status === 200);
  });

  test('counts two concurrent requests with the same request id twice', async () => {
    const { key } = await tenantWithKey(worker, 'same-id', { concurrent_requests: 1 });
    const answerNow = Promise.withResolvers<void>();
    origin.script = async (request, wire) => {
      await answerNow.promise;
      return defaultScript(request, wire);
    };
    const headers = { authorization: `Bearer ${key}`, 'x-request-id': 'mine' };
    const ask = () => worker.post({ model: 'org/tiny', prompt: 'Hi', max_tokens: 4 }, { headers });
    const first = ask();
    await eventually(
      async () => origin.requests.length,
      (count) => count === 1,
    );
    expect((await ask()).status).toBe(429);
    answerNow.resolve();
    expect((await first).status).toBe(200);
  });

  test('frees slot and idempotency key at once when a client disconnects before the origin accepts', async () => {
    const { key } = await tenantWithKey(worker, 'left-early', { concurrent_requests: 1 });
    for (const stream of [true, false]) {
      const { begun, left } = holdRequests(origin);
      const body = { model: 'org/tiny', stream };
      // Streams accept no idempotency key.
      const headers = { authorization: `Bearer ${key}`, ...(stream ? {} : { 'idempotency-key': 'early' }) };
      const request = sendRaw(worker, body, headers);
      await begun;
      reset(request);
      await left;
      origin.reset();
      const again = async () => {
        const answer = await worker.post({ ...body, prompt: 'Hi', max_tokens: 4 }, { headers });
        await answer.text();
        return answer.status;
      };
      // Long before the claim would expire.
      await eventually(again, (status) => status === 200);
    }
    const { body } = await eventually(
      () => admin(worker, 'GET', '/usage?tenant=left-early'),
      (answer) => answer.body.total.requests === 4,
    );
    expect(body.total).toMatchObject({ cancelled: 2, completed: 2 });
  });

  test(`frees every slot and bills every token after ${KILLS} randomly killed requests`, async () => {
    const slots = 24;
    const wave = 8;
    const { key } = await tenantWithKey(worker, 'killed', { concurrent_requests: slots });
    const before = origin.generated();
    origin.script = async (request, wire) => {
      // Some fail at once, some fail later, some run until they are killed.
      const fate = origin.requests.length % 5;
      if (fate === 0) return wire.refuse(500, {});
      wire.send(...acceptedFor(request));
      for (let count = 1; count <= 100 && !wire.gone(); count += 1) {
        wire.send({ type: 'token', choice: 0, text: 'x', completionTokens: count });
        if (fate === 1 && count === 3) return wire.die();
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      // The local platform does not report that a plain request's client disconnected. The request runs to
      // its end.
      if (wire.gone()) return;
      wire.send(finishOf(0, 'length', 100), doneFor(request, 100));
      wire.end();
    };
    for (let done = 0; done < KILLS; done += wave) {
      await times(wave, async (index) => {
        const kill = new AbortController();
        setTimeout(() => kill.abort(), ((done + index) * 7) % 41);
        await worker
          .post(
            { model: 'org/tiny', prompt: 'Hi', max_tokens: 200, stream: index % 3 !== 0 },
            { headers: { authorization: `Bearer ${key}` }, signal: kill.signal },
          )
          .then((response) => response.text())
          .catch(() => {});
      });
    }
    // Uses all slots at the same time: no request is answered before all have arrived, or for one second.
    const together = await eventually(
      () => {
        origin.reset();
        const full = Promise.withResolvers<void>();
        setTimeout(full.resolve, 1000);
        origin.script = async (request, wire) => {
          if (origin.requests.length === slots) full.resolve();
          await full.promise;
          return defaultScript(request, wire);
        };
        return times(slots, () => completion(worker, key));
      },
      (answers) => answers.every(({ status }) => status === 200),
    );
    expect(origin.requests).toHaveLength(slots);
    expect(together).toHaveLength(slots);
    const generated = origin.generated();
    const { body } = await eventually(
      () => admin(worker, 'GET', '/usage?tenant=killed'),
      (answer) =>
        answer.body.total.completion_tokens! >= generated.completionTokens - before.completionTokens,
    );
    expect(body.total).toMatchObject({
      prompt_tokens: generated.promptTokens - before.promptTokens,
      completion_tokens: generated.completionTokens - before.completionTokens,
    });
  });
});

describe('usage over HTTP', () => {
  test('counts by day, model and key, and shows it through the admin API', async () => {
    const today = () => new Date().toISOString().slice(0, 10);
    await withinOne(today, async (attempt) => {
      const day = today();
      const tenant = `usage-${attempt}`;
      const { key, keyId } = await tenantWithKey(worker, tenant);
      await times(10, () => completion(worker, key, { max_tokens: 3, prompt: 'abcd', n: 2 }));
      const usage = await eventually(
        () => admin(worker, 'GET', `/usage?tenant=${tenant}&group_by=day,model,key`),
        ({ body }) => body.total.requests === 10,
      );
      expect(usage.body.data).toEqual([
        expect.objectContaining({
          object: 'usage',
          day,
          model: 'org/tiny',
          key: keyId,
          requests: 10,
          completed: 10,
          finish_length: 20,
          prompt_tokens: 40,
          completion_tokens: 60,
          mean_latency_ms: expect.any(Number),
        }),
      ]);
      expect(usage.body.total).toMatchObject({ requests: 10, prompt_tokens: 40, completion_tokens: 60 });
    });
  });

  test('counts under the model’s id, even if the request uses an alias', async () => {
    const { key } = await tenantWithKey(worker, 'usage-names');
    const headers = { authorization: `Bearer ${key}`, 'x-dialect': 'llamacpp' };
    for (const model of ['org/tiny', 'default', 'gpt-3.5-turbo']) {
      const response = await worker.post({ model, prompt: 'Hi', max_tokens: 1 }, { headers });
      expect(((await response.json()) as { model: string }).model).toBe(model);
    }
    const { body } = await eventually(
      () => admin(worker, 'GET', '/usage?tenant=usage-names&group_by=model'),
      (answer) => answer.body.total.requests === 3,
    );
    expect(body.data).toEqual([expect.objectContaining({ model: 'org/tiny', requests: 3 })]);
  });

  test.each([
    ['a stream', true],
    ['a plain request', false],
  ])('bills a client that disconnects %s for all tokens until the origin notices', async (name, stream) => {
    const tenant = `usage-left-${stream}`;
    const { key } = await tenantWithKey(worker, tenant);
    const told = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    origin.script = async (request, wire) => {
      wire.send(...acceptedFor(request), { type: 'token', choice: 0, text: 'x', completionTokens: 5 });
      told.resolve();
      await wire.closed;
      const usage = { promptTokens: 3, cachedTokens: 0, completionTokens: 7 };
      origin.accounts.set(request.account!, { usage, finishReasons: [], ended: true });
      left.resolve();
    };
    const body = { model: 'org/tiny', prompt: name, max_tokens: 200, stream };
    const request = sendRaw(worker, body, { authorization: `Bearer ${key}` });
    await told.promise;
    reset(request);
    await left.promise;
    const { body: usage } = await eventually(
      () => admin(worker, 'GET', `/usage?tenant=${tenant}`),
      (answer) => answer.body.total.requests === 1,
    );
    expect(usage.total).toMatchObject({ cancelled: 1, prompt_tokens: 3, completion_tokens: 7 });
  });
});
