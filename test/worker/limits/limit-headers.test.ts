import { beforeEach, describe, expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../admin/admin-client.ts';
import { defaultScript } from '../support/scripts.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256, MAX_BODY_BYTES: '2000' });
beforeEach(() => {
  origin.script = (request, wire) => {
    const error = { message: 'no', type: 'x', param: 'prompt', code: 'invalid_value' };
    if (request.prompts[0] === 'refused') wire.refuse(400, { error });
    else if (request.prompts[0] === 'broken') wire.refuse(500, {});
    else return defaultScript(request, wire);
  };
});

const LIMITS = { requests_per_minute: 50, tokens_per_minute: 1000 };
const UNITS = ['requests', 'tokens'] as const;

interface Case {
  readonly name: string;
  readonly status: number;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly path?: string;
  readonly method?: string;
}

const CASES: readonly Case[] = [
  { name: 'a completion', status: 200 },
  { name: 'a stream', status: 200, fields: { stream: true } },
  { name: 'a resumable stream', status: 200, fields: { stream: true }, headers: { 'x-resumable': 'true' } },
  { name: "the origin's refusal", status: 400, fields: { prompt: 'refused' } },
  { name: "the origin's failure", status: 502, fields: { prompt: 'broken' } },
  { name: 'an invalid field', status: 400, fields: { n: 0 } },
  { name: 'a body that is not JSON', status: 400, body: '{' },
  { name: 'an unknown model', status: 404, fields: { model: 'nope' } },
  { name: 'a body that is too large', status: 413, fields: { prompt: 'x'.repeat(3000) } },
  { name: 'another media type', status: 415, headers: { 'content-type': 'text/plain' } },
  { name: 'an invalid idempotency key', status: 400, headers: { 'idempotency-key': 'a b' } },
  {
    name: 'an invalid resumable request',
    status: 400,
    fields: { n: 0 },
    headers: { 'x-resumable': 'true' },
  },
  { name: 'more tokens than the limit per minute', status: 429, fields: { max_tokens: 2000, best_of: 2 } },
  {
    name: 'an expired stream',
    status: 404,
    method: 'GET',
    path: `/v1/completions/cmpl-${'0'.repeat(32)}/stream`,
  },
];

async function send(
  { fields, headers, body, path = '/v1/completions', method = 'POST' }: Omit<Case, 'name' | 'status'>,
  key: string,
) {
  const text = body ?? JSON.stringify({ model: 'org/tiny', prompt: [1], max_tokens: 4, ...fields });
  const answer = await worker.request(path, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    ...(method === 'GET' ? {} : { body: text }),
  });
  await answer.text();
  return answer;
}

const remaining = ({ headers }: Response) =>
  UNITS.map((unit) => Number(headers.get(`x-ratelimit-remaining-${unit}`)));

function expectAll({ headers }: Response): void {
  for (const [unit, limit] of [
    ['requests', '50'],
    ['tokens', '1000'],
  ]) {
    expect(headers.get(`x-ratelimit-limit-${unit}`)).toBe(limit);
    expect(headers.get(`x-ratelimit-remaining-${unit}`)).toMatch(/^\d+$/);
    expect(headers.get(`x-ratelimit-reset-${unit}`)).toMatch(/^(\d+m)?[\d.]+s$|^\d+ms$/);
  }
}

describe('x-ratelimit headers', () => {
  test.each(CASES)('$name has all of them', async ({ name, status, ...sent }) => {
    const { key } = await tenantWithKey(worker, `t${CASES.findIndex((one) => one.name === name)}`, LIMITS);
    const answer = await send(sent, key);
    expect(answer.status).toBe(status);
    expectAll(answer);
  });

  test('shows the current limits on a replayed response and on a conflict', async () => {
    const { key } = await tenantWithKey(worker, 'again', LIMITS);
    const headers = { 'idempotency-key': 'once' };
    await send({ headers }, key);
    await send({}, key);
    const replayed = await send({ headers }, key);
    expect(replayed.headers.get('idempotent-replayed')).toBe('true');
    expectAll(replayed);
    expect(remaining(replayed)[0]).toBe(48);
    const conflict = await send({ headers, fields: { prompt: 'Bye' } }, key);
    expect(conflict.status).toBe(409);
    expectAll(conflict);
  });

  test('changes no counter when it reads the limits', async () => {
    const { key } = await tenantWithKey(worker, 'asked', LIMITS);
    const untouched = await Promise.all(Array.from({ length: 60 }, () => send({ fields: { n: 0 } }, key)));
    for (const answer of untouched) expect(remaining(answer)).toEqual([50, 1000]);
    const first = await send({}, key);
    expect(remaining(first)).toEqual([49, 995]);
  });

  test('shows limits to a suspended tenant, but not to an unknown or revoked key', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'known', LIMITS);
    await admin(worker, 'PATCH', '/tenants/known', { suspended: true });
    const suspended = await send({}, key);
    expect(suspended.status).toBe(403);
    expectAll(suspended);
    await admin(worker, 'PATCH', '/tenants/known', { suspended: false });
    await send({}, key);
    const names = (answer: Response) =>
      [...answer.headers.keys()].filter((name) => name.startsWith('x-ratelimit'));
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    for (const wrong of [key, 'sk-nonsense']) {
      const answer = await send({}, wrong);
      expect([answer.status, names(answer)]).toEqual([401, []]);
    }
  });

  test('adds no headers for a tenant without limits per minute', async () => {
    const { key } = await tenantWithKey(worker, 'free', { concurrent_requests: 5 });
    for (const fields of [{}, { n: 0 }]) {
      const { headers } = await send({ fields }, key);
      expect([...headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
    }
  });
});
