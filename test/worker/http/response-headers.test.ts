import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../../worker/routes.ts';
import { ADMIN_KEY, ADMIN_KEY_SHA256, completion } from '../admin/admin-client.ts';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const PAGE = 'https://app.example.com';

const { worker, origin } = workerForTests({
  ADMIN_KEY_SHA256,
  CORS_ORIGINS: `${PAGE}, https://Slashed.example.com:443/ app://page`,
});

describe('headers of every response', () => {
  test.each([
    ['/health', 'GET'],
    ['/v1/models', 'GET'],
    ['/nope', 'GET'],
    ['/v1/completions', 'GET'],
    ['/v1/completions', 'POST'],
    ['/admin/v1/keys', 'GET'],
  ])('adds security headers and timings to %s %s', async (path, method) => {
    const { headers } = await worker.request(path, { method });
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('strict-transport-security')).toMatch(/^max-age=\d+/);
    expect(headers.get('server-timing')).toMatch(/total;dur=\d/);
    expect(headers.get('x-request-id')).toBeTruthy();
  });

  test('reports the duration of each step of a completion', async () => {
    const { headers } = await completion(worker, KEY);
    const names = headers
      .get('server-timing')
      ?.split(', ')
      .map((entry) => entry.split(';')[0]);
    expect(names).toEqual(['auth', 'limit', 'queue', 'first-token', 'total']);
  });

  test('adds a missing traceparent and replaces an invalid one', async () => {
    for (const given of [undefined, 'nonsense', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
      origin.reset();
      await worker.post(
        { model: 'org/tiny', prompt: 'Hi' },
        { headers: given === undefined ? {} : { traceparent: given } },
      );
      expect(origin.headers[0]?.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      expect(origin.headers[0]?.traceparent).not.toBe(given);
    }
  });
});

test.each([
  ['an answer', '/v1/models', {}, 200],
  ['an answer of the admin API', '/admin/v1/tenants', { authorization: `Bearer ${ADMIN_KEY}` }, 200],
  ['a refusal without a valid key', '/v1/models', { authorization: 'Bearer wrong' }, 401],
  ['an unknown address', '/v1/nothing', {}, 404],
])('forbids caches to store %s', async (_, path, headers, status) => {
  const answer = await worker.request(path, { headers });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('vary')).toBe('origin, authorization, x-api-key, api-key');
});

test.each([false, true])('forbids caches to store a completion (stream: %s)', async (stream) => {
  const answer = await worker.post({ model: 'org/tiny', prompt: 'Hi', stream });
  await answer.text();
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('vary')).toContain('authorization');
});

test('lets caches store what needs no key', async () => {
  expect((await worker.request('/health')).headers.get('cache-control')).toBeNull();
  const start = await worker.request('/');
  expect(start.headers.get('vary')).toBe('accept, accept-encoding, origin');
});

describe('CORS', () => {
  const ask = (path: string, from: string) =>
    worker.request(path, {
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-os',
      },
    });

  test('allows a listed page to call and to read the limit headers', async () => {
    const asked = await ask('/v1/completions', PAGE);
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-origin')).toBe(PAGE);
    expect(asked.headers.get('access-control-allow-headers')).toContain('x-stainless-os');
    for (const method of new Set(ROUTES.map((route) => route.method)))
      expect(asked.headers.get('access-control-allow-methods')).toContain(method);
    const answered = await worker.post({ model: 'org/tiny', prompt: 'Hi' }, { headers: { origin: PAGE } });
    expect(answered.headers.get('access-control-allow-origin')).toBe(PAGE);
    expect(answered.headers.get('access-control-expose-headers')).toContain('x-ratelimit-remaining-tokens');
    expect(answered.headers.get('vary')).toBe('origin, authorization, x-api-key, api-key');
  });

  test('normalizes the configured origin of a page', async () => {
    for (const page of ['https://slashed.example.com', 'app://page']) {
      expect((await ask('/v1/completions', page)).status).toBe(204);
    }
  });

  test('rejects unlisted pages, and all pages for the admin API', async () => {
    for (const [path, from] of [
      ['/v1/completions', 'https://evil.example.com'],
      ['/admin/v1/keys', PAGE],
    ] as const) {
      const asked = await ask(path, from);
      expect(asked.status).not.toBe(204);
      expect(asked.headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});
