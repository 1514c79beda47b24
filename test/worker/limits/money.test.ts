import { beforeAll, describe, expect, test } from 'vitest';
import { tokenLimitNumber } from '../../../shared/sampling.ts';
import {
  ADMIN_KEY_SHA256,
  type Answer,
  type AnswerBody,
  admin,
  completion,
  tenantWithKey,
} from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import type { Script } from '../support/fake-origin.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../support/scripts.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 });

/** Micro-units per token: 1 for the prompt, 0.1 if it is cached, 2.5 for the completion. */
const PRICE = { prompt_micros: 1_000_000, cached_prompt_micros: 100_000, completion_micros: 2_500_000 };

beforeAll(async () => {
  const { status } = await admin(worker, 'POST', '/prices', {
    model: 'org/tiny',
    ...PRICE,
    flex_permille: 500,
  });
  expect(status).toBe(201);
});

const credit = (tenant: string, id: string, micros: number): Promise<Answer> =>
  admin(worker, 'POST', '/credits', { tenant, id, micros });

const total = async (tenant: string, requests: number) =>
  (
    await eventually(
      () => admin(worker, 'GET', `/usage?tenant=${tenant}`),
      ({ body }) => body.total.requests === requests,
    )
  ).body.total;

interface OwnKey {
  readonly used: Readonly<Record<string, number>>;
  readonly left: object;
  readonly tenant: { readonly left: object; readonly balance_micros: number | null };
  readonly alerts: readonly Readonly<Record<string, unknown>>[];
}
const ownKey = async (key: string): Promise<OwnKey> =>
  (await (await worker.request('/v1/key', { headers: { authorization: `Bearer ${key}` } })).json()) as OwnKey;

/** Answers with as many tokens as are wanted, to a prompt of 10 tokens of which some are cached. */
const cachedPrompt =
  (cachedTokens: number): Script =>
  (request, wire) => {
    const { model } = request;
    const maxTokens = tokenLimitNumber(request.maxTokens);
    wire.send({ type: 'accepted', model, promptTokens: [10] });
    wire.send({ type: 'started', prompt: 0, cachedTokens, queueMs: 0 });
    for (let token = 1; token <= maxTokens; token += 1) wire.send(tokenEvent(token, 'x'));
    const usage = { promptTokens: 10, cachedTokens, completionTokens: maxTokens };
    wire.send(finishOf(0, 'length', maxTokens), { ...doneFor(request, maxTokens), usage });
    wire.end();
  };

describe('costs', () => {
  test('are in the ledger, rounded up once per request, with the factor of the tier', async () => {
    const { key } = await tenantWithKey(worker, 'costs');
    origin.script = cachedPrompt(5);
    await completion(worker, key, { max_tokens: 3 });
    await completion(worker, key, { max_tokens: 3, service_tier: 'flex' });
    await completion(worker, key, { max_tokens: 3, service_tier: 'priority' });
    origin.reset();
    // 5 · 1 + 5 · 0.1 + 3 · 2.5 = 13 micro-units; with the factor 6.5, rounded up.
    expect((await total('costs', 3)).cost_micros).toBe(13 + 7 + 13);
    expect((await ownKey(key)).used).toMatchObject({ micros_per_day: 33, micros_per_month: 33 });
  });

  test('are shown with their request, with the version of their price and what they leave of limits', async () => {
    const limits = { micros_per_day: 1_000, tokens_per_day: 500 };
    const { key } = await tenantWithKey(worker, 'left', { micros_per_month: 90 }, { limits });
    origin.script = cachedPrompt(5);
    const { headers } = await completion(worker, key, { max_tokens: 3 });
    origin.reset();
    await total('left', 1);
    const path = `/v1/requests/${headers.get('x-request-id')}`;
    const shown = await (await worker.request(path, { headers: { authorization: `Bearer ${key}` } })).json();
    expect(shown).toMatchObject({ cost_micros: 13, price_version: '1' });
    const own = await ownKey(key);
    const none = {
      tokens_per_day: null,
      tokens_per_month: null,
      micros_per_day: null,
      micros_per_month: null,
    };
    expect(own.left).toEqual({
      ...none,
      tokens_per_day: 500 - own.used.tokens_per_day!,
      micros_per_day: 987,
    });
    expect(own.tenant.left).toEqual({ ...none, micros_per_month: 77 });
  });

  test('have a price that /v1/models shows', async () => {
    const { data } = (await (await worker.request('/v1/models')).json()) as {
      data: readonly { readonly pricing: object }[];
    };
    expect(data[0]!.pricing).toMatchObject({ ...PRICE, flex_permille: 500, batch_permille: 1_000 });
  });

  test('of a request keep their price if a new one comes while it runs', async () => {
    const { key } = await tenantWithKey(worker, 'running');
    const model = 'second';
    origin.models = [...origin.models, { ...origin.models[0]!, id: model, aliases: [] }];
    const price = (completion_micros: number) =>
      admin(worker, 'POST', '/prices', { model, prompt_micros: 0, completion_micros });
    await price(1_000_000);
    let goOn = (): void => {};
    const changed = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    origin.script = async (request, wire) => {
      wire.send(...acceptedFor(request), tokenEvent(1, 'x'));
      await changed;
      wire.send(tokenEvent(2, 'x'), finishOf(0, 'length', 2), doneFor(request, 2));
      wire.end();
    };
    const running = completion(worker, key, { model, max_tokens: 2 });
    await eventually(
      async () => origin.requests.some((request) => request.model === model),
      (arrived) => arrived,
    );
    await price(9_000_000);
    goOn();
    await running;
    origin.reset();
    expect((await total('running', 1)).cost_micros).toBe(2);
  });

  test.each([
    ['a cached price above the other', { ...PRICE, cached_prompt_micros: 2_000_000 }, 'cached_prompt_micros'],
    ['a fraction', { ...PRICE, prompt_micros: 0.5 }, 'prompt_micros'],
    ['a negative price', { ...PRICE, completion_micros: -1 }, 'completion_micros'],
    ['a time in the past', { ...PRICE, valid_from: 1_000 }, 'valid_from'],
    ['a time in milliseconds', { ...PRICE, valid_from: Date.now() + 3_600_000 }, 'valid_from'],
  ])('have no price with %s', async (_, price, param) => {
    const { status, body } = await admin(worker, 'POST', '/prices', { model: 'other', ...price });
    expect([status, body.error.param]).toEqual([400, param]);
  });
});

describe('a prepaid balance', () => {
  test('refuses what it cannot pay with 429 that must not be retried, and goes on after a payment', async () => {
    const { key } = await tenantWithKey(worker, 'prepaid');
    await credit('prepaid', 'first', 700);
    origin.script = cachedPrompt(0);
    const cut = await completion(worker, key, { max_tokens: 300 });
    origin.reset();
    expect(cut.status).toBe(200);
    expect(cut.body.choices[0]).toMatchObject({ finish_reason: 'length' });
    // The prompt costs 10, and each token 2.5.
    expect(cut.body.usage).toMatchObject({ completion_tokens: 276, limit_reached: 'balance' });
    const refused = await eventually(
      () => completion(worker, key),
      ({ status }) => status === 429,
    );
    expect(refused.body.error).toMatchObject({ type: 'insufficient_quota' });
    expect(refused.body.error.message).toContain('on balance (micro-units): Limit 700, Used 700');
    expect(refused.headers.get('x-should-retry')).toBe('false');
    await credit('prepaid', 'second', 1_000);
    expect((await completion(worker, key, { max_tokens: 4 })).status).toBe(200);
    const { cost_micros: spent } = await total('prepaid', 2);
    expect((await ownKey(key)).tenant.balance_micros).toBe(1_700 - spent!);
  });

  test('pays with what the prefix cache saves', async () => {
    const { key } = await tenantWithKey(worker, 'saving');
    await credit('saving', 'first', 700);
    origin.script = cachedPrompt(10);
    const { body } = await completion(worker, key, { max_tokens: 300 });
    origin.reset();
    // The prompt costs 1, so 3.6 tokens more than 276.
    expect(body.usage).toMatchObject({ completion_tokens: 279, limit_reached: 'balance' });
  });

  test('counts an entry that is sent twice once, and refuses another amount under its id', async () => {
    await tenantWithKey(worker, 'twice');
    expect((await credit('twice', 'same', 70)).status).toBe(201);
    expect((await credit('twice', 'same', 70)).status).toBe(201);
    expect((await credit('twice', 'same', 71)).body.error).toMatchObject({ code: 'conflict', param: 'id' });
    const { body } = await admin(worker, 'GET', '/credits?tenant=twice');
    expect(body.data).toMatchObject([
      { id: 'opening', micros: 0 },
      { id: 'same', micros: 70 },
    ]);
    expect((await credit('nobody', 'x', 1)).status).toBe(404);
  });

  test('alerts about shares of what it had after its last entry', async () => {
    const { key } = await tenantWithKey(worker, 'alerted');
    const model = 'one-micro';
    origin.models = [...origin.models, { ...origin.models[0]!, id: model, aliases: [] }];
    await admin(worker, 'POST', '/prices', { model, prompt_micros: 0, completion_micros: 1_000_000 });
    let requests = 0;
    const alertsAfter = async (tokens: number) => {
      origin.script = cachedPrompt(0);
      expect((await completion(worker, key, { model, max_tokens: tokens })).status).toBe(200);
      requests += 1;
      await total('alerted', requests);
      return (await ownKey(key)).alerts
        .map((alert) => [alert.share_percent, alert.limit_micros, alert.spent_micros])
        .sort(([one], [other]) => Number(one) - Number(other));
    };
    await credit('alerted', 'first', 100);
    expect(await alertsAfter(60)).toEqual([[50, 100, 60]]);
    expect(await alertsAfter(20)).toHaveLength(2);
    expect((await alertsAfter(20)).at(-1)).toEqual([100, 100, 100]);
    await credit('alerted', 'second', 100);
    await credit('alerted', 'correction', -50);
    expect(await alertsAfter(24)).toHaveLength(3);
    expect((await alertsAfter(1)).filter(([share]) => share === 50)).toContainEqual([50, 50, 25]);
    origin.reset();
  });

  test('has a sum that a number can hold exactly, and entries of 0 are in the audit log', async () => {
    await tenantWithKey(worker, 'rich');
    for (let count = 1; count <= 9; count += 1)
      expect((await credit('rich', `${count}`, 1e15)).status).toBe(201);
    const { status, body } = await credit('rich', 'too-much', 1e15);
    expect([status, body.error.param]).toEqual([400, 'micros']);
    expect((await credit('rich', 'rest', Number.MAX_SAFE_INTEGER - 9e15)).status).toBe(201);
    expect((await credit('rich', 'one-more', 1)).status).toBe(400);
    expect((await credit('rich', 'nothing', 0)).status).toBe(201);
    expect((await credit('rich', 'nothing', 0)).status).toBe(201);
    const audit = await admin(worker, 'GET', '/audit?tenant=rich&action=createCredit');
    const entries = audit.body.data as unknown as readonly { readonly target: string }[];
    expect(entries.map(({ target }) => target)).toEqual([
      'nothing',
      'rest',
      ...Array.from({ length: 9 }, (_, index) => `${9 - index}`),
    ]);
  });

  test('does not pay for what was spent before its first entry', async () => {
    const { key } = await tenantWithKey(worker, 'postpaid');
    await completion(worker, key);
    const { cost_micros: before } = await total('postpaid', 1);
    expect(before).toBeGreaterThan(0);
    await credit('postpaid', 'first', 500);
    expect((await ownKey(key)).tenant.balance_micros).toBe(500);
    expect((await admin(worker, 'GET', '/balances/postpaid')).body).toEqual({
      ...{ object: 'balance', tenant: 'postpaid' },
      ...{ paid_micros: before! + 500, spent_micros: before, balance_micros: 500 },
    });
  });
});

describe('limits of cost', () => {
  test('of a key and of a tenant are named by the refusal', async () => {
    const { key } = await tenantWithKey(worker, 'limited', {}, { limits: { micros_per_day: 12 } });
    expect((await completion(worker, key)).status).toBe(200);
    const { body } = await eventually(
      () => completion(worker, key),
      ({ status }) => status === 429,
    );
    expect(body.error.message).toMatch(/in key \S+ on cost per day \(micro-units\): Limit 12/);
  });

  test('refuse nothing that costs nothing', async () => {
    const { key } = await tenantWithKey(worker, 'free', { micros_per_month: 1 });
    const model = 'free';
    origin.models = [...origin.models, { ...origin.models[0]!, id: model, aliases: [] }];
    for (let count = 0; count < 3; count += 1)
      expect((await completion(worker, key, { model })).status).toBe(200);
    expect((await total('free', 3)).cost_micros).toBe(0);
    origin.reset();
  });

  test('come with a warning while served models have no price, as a balance does', async () => {
    origin.models = [...origin.models, { ...origin.models[0]!, id: 'for-nothing', aliases: [] }];
    const limits = { micros_per_day: 1_000 };
    await admin(worker, 'POST', '/plans', { id: 'no-cost', name: 'n' });
    await admin(worker, 'POST', '/tenants', { id: 'priceless', name: 'n' });
    const { body: key } = await admin(worker, 'POST', '/keys', { tenant: 'priceless', name: 'n' });
    const answers = [
      await admin(worker, 'POST', '/plans', { id: 'of-cost', name: 'n', limits }),
      await admin(worker, 'PATCH', '/plans/no-cost', { limits: { soft_micros_per_month: 5 } }),
      await admin(worker, 'POST', '/tenants', { id: 'priceless-2', name: 'n', limits }),
      await admin(worker, 'PATCH', '/tenants/priceless', { limits: { user_micros_per_day: 5 } }),
      await admin(worker, 'POST', '/keys', { tenant: 'priceless', name: 'n', limits }),
      await admin(worker, 'PATCH', `/keys/${key.id}`, { limits }),
      await credit('priceless', 'first', 5),
    ];
    for (const { body } of answers)
      expect((body as { warning?: string }).warning).toMatch(
        /micros\S*: requests to models .+: for-nothing\.$/,
      );
    const tokens = await admin(worker, 'PATCH', '/tenants/priceless', { limits: { tokens_per_day: 5 } });
    expect(tokens.body).not.toHaveProperty('warning');
    origin.reset();
  });

  test('of a new key that are more than its tenant has left come with a warning', async () => {
    await tenantWithKey(worker, 'warned', { micros_per_month: 1_000 });
    const add = async (micros_per_day: number) =>
      (await admin(worker, 'POST', '/keys', { tenant: 'warned', name: 'k', limits: { micros_per_day } }))
        .body as AnswerBody & { readonly warning?: string };
    expect((await add(900)).warning).toBeUndefined();
    await credit('warned', 'little', 100);
    expect((await add(900)).warning).toBe('micros_per_day is 900, but the account has 100 left.');
  });
});
