import { describe, expect, test } from 'vitest';
import { completion } from '../admin/admin-client.ts';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const PAGE = 'https://app.example.com';

const { worker, origin } = workerForTests({
  CORS_ORIGINS: `${PAGE}, https://Slashed.example.com:443/ app://page`,
});

describe('headers of every answer', () => {
  test.each([
    ['/health', 'GET'],
    ['/v1/models', 'GET'],
    ['/nope', 'GET'],
    ['/v1/completions', 'GET'],
    ['/v1/completions', 'POST'],
    ['/admin/v1/keys', 'GET'],
  ])('%s %s has the security headers and says how long it took', async (path, method) => {
    const { headers } = await worker.request(path, { method });
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('strict-transport-security')).toMatch(/^max-age=\d+/);
    expect(headers.get('server-timing')).toMatch(/total;dur=\d/);
    expect(headers.get('x-request-id')).toBeTruthy();
  });

  test('a completion says where its time went', async () => {
    const { headers } = await completion(worker, KEY);
    const names = headers
      .get('server-timing')
      ?.split(', ')
      .map((entry) => entry.split(';')[0]);
    expect(names).toEqual(['auth', 'limit', 'queue', 'first-token', 'total']);
  });

  test('a trace without a traceparent gets one, a broken one is replaced', async () => {
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

describe('browsers', () => {
  const ask = (path: string, from: string) =>
    worker.request(path, {
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-os',
      },
    });

  test('a page that is listed may call and read the limits', async () => {
    const asked = await ask('/v1/completions', PAGE);
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-origin')).toBe(PAGE);
    expect(asked.headers.get('access-control-allow-headers')).toContain('x-stainless-os');
    const answered = await worker.post({ model: 'org/tiny', prompt: 'Hi' }, { headers: { origin: PAGE } });
    expect(answered.headers.get('access-control-allow-origin')).toBe(PAGE);
    expect(answered.headers.get('access-control-expose-headers')).toContain('x-ratelimit-remaining-tokens');
    expect(answered.headers.get('vary')).toBe('origin');
  });

  test('a page is listed by its origin, however that was written', async () => {
    for (const page of ['https://slashed.example.com', 'app://page']) {
      expect((await ask('/v1/completions', page)).status).toBe(204);
    }
  });

  test('a page that is not listed may not, and the admin API is closed to all', async () => {
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
