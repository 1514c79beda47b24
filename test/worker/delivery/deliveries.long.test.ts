import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { serve } from '../../support/local-server.ts';
import {
  ADMIN_KEY_SHA256,
  type AnswerBody,
  admin,
  completion,
  tenantWithKey,
} from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeOrigin } from '../support/fake-origin.ts';
import { startWorker } from '../support/worker.ts';

/** What an endpoint has got. */
interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const received: Received[] = [];
/** Statuses of the next answers by path, or by the tenant of usage events; 204 after them. */
let answers: Record<string, number[]> = {};
const endpoint = forAllTests(() =>
  serve((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, text });
      const [, tenant] = /"subject":"(\w+)"/.exec(text) ?? [];
      response.writeHead(answers[tenant ?? request.url ?? '']?.shift() ?? 204).end();
    });
  }),
);

const origin = forAllTests(startFakeOrigin);
const worker = forAllTests(() =>
  startWorker(origin, {
    ADMIN_KEY_SHA256,
    WEBHOOK_SECRET: 'a secret for the webhooks of tests',
    WEBHOOK_SECRET_OLD: 'the secret of webhooks before it',
    BILLING_URL: `${endpoint.url}/billing`,
    BILLING_SECRET: 'a secret for billing',
    BILLING_SECRET_OLD: 'the secret before it',
    BILLING_TOKEN: 'token-of-billing',
  }),
);
beforeAll(async () => {
  // A completion of the fake origin costs 1 or 2 for its prompt, and 100 for each of 4 tokens.
  await admin(worker, 'POST', '/prices', {
    model: 'org/tiny',
    prompt_micros: 1_000_000,
    completion_micros: 100_000_000,
  });
});
beforeEach(() => {
  received.length = 0;
  answers = {};
});

const at = (path: string) => received.filter((one) => one.path === path);
const key = async (token: string) =>
  (await (
    await worker.request('/v1/key', { headers: { authorization: `Bearer ${token}` } })
  ).json()) as AnswerBody & {
    readonly alerts: readonly Readonly<Record<string, unknown>>[];
    readonly used: Readonly<Record<string, number>>;
    readonly tenant: { readonly balance_micros: number | null };
  };

/** The signature by the definition of Standard Webhooks, with Node's own HMAC. */
function expectedSignature({ headers, text }: Received, secret: Buffer): string {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
  return `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`;
}

test('alerts a tenant once per share of its limit, signed and repeated until the webhook takes it', async () => {
  const { key: token, keyId } = await tenantWithKey(worker, 'alerted', { micros_per_month: 1_000 });
  const { body: webhook } = await admin(worker, 'POST', '/webhooks', {
    tenant: 'alerted',
    url: `${endpoint.url}/hook`,
  });
  const { secret } = webhook as unknown as { readonly secret: string };
  answers = { '/hook': [500, 302] };
  await completion(worker, token);
  expect((await completion(worker, token)).status).toBe(200);
  const deliveries = await eventually(
    async () => at('/hook'),
    (all) => all.length >= 4,
  );
  const events = deliveries.map(
    ({ text }) => JSON.parse(text) as { type: string; data: Record<string, unknown> },
  );
  expect(events.map(({ data }) => data.share_percent)).toEqual([50, 50, 50, 80]);
  expect(new Set(deliveries.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  expect(events[3]).toMatchObject({
    type: 'limit.reached',
    data: { tenant: 'alerted', key: null, limit: 'micros_per_month', limit_micros: 1_000 },
  });
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
  for (const one of deliveries) {
    const [signature, old] = String(one.headers['webhook-signature']).split(' ');
    expect(signature).toBe(expectedSignature(one, bytes));
    expect(old).toMatch(/^v1,/);
  }
  const shown = await key(token);
  expect(shown.alerts.map(({ limit, share_percent }) => [limit, share_percent]).toSorted()).toEqual([
    ['micros_per_month', 50],
    ['micros_per_month', 80],
  ]);
  expect(keyId).toBeTypeOf('string');
});

test('a limit that is raised alerts again at the shares of its new amount, once each', async () => {
  const { key: token } = await tenantWithKey(worker, 'raised', { micros_per_month: 500 });
  await admin(worker, 'POST', '/webhooks', { tenant: 'raised', url: `${endpoint.url}/raised` });
  await completion(worker, token);
  await eventually(
    () => key(token),
    ({ alerts }) => alerts.length === 2,
  );
  await admin(worker, 'PATCH', '/tenants/raised', { limits: { micros_per_month: 2_000 } });
  for (const count of [2, 3, 4]) expect((await completion(worker, token)).status, `${count}`).toBe(200);
  const deliveries = await eventually(
    async () => at('/raised'),
    (all) => all.length >= 4,
  );
  const sent = deliveries.map(({ text }) => (JSON.parse(text) as { data: Record<string, unknown> }).data);
  expect(sent.map(({ limit_micros, share_percent }) => [limit_micros, share_percent])).toEqual([
    ...[
      [500, 50],
      [500, 80],
    ],
    ...[
      [2_000, 50],
      [2_000, 80],
    ],
  ]);
  expect(new Set(deliveries.map(({ headers }) => headers['webhook-id'])).size).toBe(4);
});

test('a soft limit alerts and refuses nothing', async () => {
  const { key: token } = await tenantWithKey(worker, 'soft', { soft_micros_per_day: 300 });
  expect((await completion(worker, token)).status).toBe(200);
  expect((await completion(worker, token)).status).toBe(200);
  const { alerts } = await eventually(
    () => key(token),
    (shown) => shown.alerts.length === 3,
  );
  expect(new Set(alerts.map(({ limit }) => limit))).toEqual(new Set(['soft_micros_per_day']));
});

test('lists no events of a tenant that does not exist', async () => {
  expect((await admin(worker, 'GET', '/events?tenant=nobody')).status).toBe(404);
  expect((await admin(worker, 'GET', '/events?tenant=alerted')).status).toBe(200);
});

test('refuses webhooks at private addresses outside development', async () => {
  const guarded = await startWorker(origin, {
    ADMIN_KEY_SHA256,
    ENVIRONMENT: 'production',
    WEBHOOK_SECRET: 'a secret for the webhooks of tests',
  });
  try {
    await admin(guarded, 'POST', '/tenants', { id: 'inner', name: 'inner' });
    const set = (target: string) => admin(guarded, 'POST', '/webhooks', { tenant: 'inner', url: target });
    for (const target of ['https://10.0.0.1/', 'https://[::1]/', 'http://hooks.example.com/']) {
      const { status, body } = await set(target);
      expect([status, body.error?.param]).toEqual([400, 'url']);
    }
    expect((await set('https://hooks.example.com/')).status).toBe(201);
  } finally {
    await guarded.stop();
  }
});

test('sends each billed request as a CloudEvent with a stable id, in order, until billing takes it', async () => {
  const { key: token } = await tenantWithKey(worker, 'billed');
  answers = { billed: [503] };
  for (let count = 0; count < 5; count += 1) await completion(worker, token, { max_tokens: 4 });
  const eventsOf = (one: Received) => JSON.parse(one.text) as { id: string; subject: string; data: Usage }[];
  interface Usage {
    readonly completion_tokens: number;
    readonly cost_micros: number;
  }
  const batches = await eventually(
    async () => at('/billing').filter((one) => eventsOf(one).some(({ subject }) => subject === 'billed')),
    (all) => new Set(all.flatMap(eventsOf).map(({ id }) => id)).size === 5,
  );
  const [first] = batches;
  expect(first!.headers['content-type']).toBe('application/cloudevents-batch+json');
  expect(first!.headers.authorization).toBe('Bearer token-of-billing');
  // During a change of the secret, both are used.
  const signatures = ['a secret for billing', 'the secret before it'].map((secret) =>
    expectedSignature(first!, Buffer.from(secret)),
  );
  expect(first!.headers['webhook-signature']).toBe(signatures.join(' '));
  // The refused batch came again, and nothing else did.
  const [refused, ...taken] = batches.map(eventsOf);
  const ids = taken.flat().map(({ id }) => id);
  expect(ids).toHaveLength(new Set(ids).size);
  expect(ids.slice(0, refused!.length)).toEqual(refused!.map(({ id }) => id));
  const costs = taken.flat().map(({ data }) => data.cost_micros);
  const { body } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=billed'),
    (answer) => answer.body.total.requests === 5,
  );
  expect(costs.reduce((sum, cost) => sum + cost, 0)).toBe(body.total.cost_micros);
});

test('gives other events another webhook id, so that a receiver that ignores known ids loses none', async () => {
  const { key: token } = await tenantWithKey(worker, 'grown');
  answers = { grown: Array(9).fill(503) };
  const batches = () => at('/billing').filter(({ text }) => text.includes('"grown"'));
  await completion(worker, token);
  await expect.poll(() => batches().length).toBeGreaterThan(0);
  await completion(worker, token);
  const grown = () => batches().filter(({ text }) => text.match(/"subject":"grown"/g)?.length === 2);
  await expect.poll(() => grown().length).toBeGreaterThan(1);
  const texts = new Map<unknown, Set<string>>();
  for (const { headers, text } of batches()) {
    const id = headers['webhook-id'];
    texts.set(id, (texts.get(id) ?? new Set()).add(text));
  }
  expect([...texts.values()].map(({ size }) => size)).toEqual([1, 1]);
});

test('bills what an erased tenant has used before its state is deleted, also if billing refuses it at first', async () => {
  const billing = { BILLING_URL: `${endpoint.url}/billing`, BILLING_SECRET: 'a secret for billing' };
  const brief = await startWorker(origin, { ADMIN_KEY_SHA256, ERASE_AFTER_MS: '50', ...billing });
  try {
    const { key: token } = await tenantWithKey(brief, 'leaving');
    answers = { leaving: [503, 503] };
    await completion(brief, token);
    const attempts = (count: number) =>
      eventually(
        async () => at('/billing').filter(({ text }) => text.includes('"leaving"')).length,
        (all) => all >= count,
      );
    await attempts(1);
    await admin(brief, 'PATCH', '/tenants/leaving', { suspended: true });
    expect((await admin(brief, 'DELETE', '/tenants/leaving')).status).toBe(200);
    expect(await attempts(3)).toBe(3);
  } finally {
    await brief.stop();
  }
});
