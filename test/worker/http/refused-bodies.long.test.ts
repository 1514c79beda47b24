import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { MODEL } from '../support/fake-origin.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

// Longer than a test: an answer that waited for a body would never come.
const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256, BODY_TIMEOUT_MS: '600000' });

const post = (path: string, body: unknown, key: string, headers: Readonly<Record<string, string>> = {}) =>
  worker.postTo(path, body, { authorization: `Bearer ${key}`, ...headers });

/** Sends the start of a large body, and returns the answer that comes without the rest. */
async function answerWithoutBody(path: string, key: string, header: string): Promise<string> {
  const { hostname, port } = new URL(worker.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\n${header}\r\n\r\n`,
  );
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString();
}

const PATHS = ['/v1/completions', '/completion', '/infill', '/v1/score', '/tokenize', '/detokenize'];
const HEADERS = ['Content-Length: 1000000', 'Transfer-Encoding: chunked'];

// At once, because the Worker waits a second for the rest of each body.
test('every path answers a caller without room or key before a large body has arrived', async () => {
  const { key } = await tenantWithKey(worker, 'full', { requests_per_minute: 1 });
  expect((await post('/tokenize', { prompt: 'x' }, key)).status).toBe(200);
  const replayed = ['idempotency-key', 'x-resumable'].map(
    (name) => ['/v1/completions', `${name}: true\r\nContent-Length: 1000000`] as const,
  );
  const cases = PATHS.flatMap((path) => HEADERS.map((header) => [path, header] as const));
  await Promise.all(
    [...cases, ...replayed].map(async ([path, header]) => {
      const [refused, unknown] = await Promise.all([
        answerWithoutBody(path, key, header),
        answerWithoutBody(path, 'wrong', header),
      ]);
      expect(refused, path).toMatch(/^HTTP\/1\.1 429 /);
      expect(refused, path).toContain('x-ratelimit-remaining-requests: 0');
      expect(unknown, path).toMatch(/^HTTP\/1\.1 401 /);
    }),
  );
});

test('the check before a large body takes no room', async () => {
  const { key } = await tenantWithKey(worker, 'room', { requests_per_minute: 3, concurrent_requests: 1 });
  const note = 'x'.repeat(20_000);
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 2 };
  expect((await post('/v1/completions', { ...body, n: -1, note }, key)).status).toBe(400);
  for (const left of ['2', '1', '0']) {
    const answer = await post('/v1/completions', { ...body, prompt: note }, key);
    expect([answer.status, answer.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, left]);
    await answer.text();
  }
});

test('refuses 1.8 MB without a key so that every client sees the answer', async () => {
  const prompt = 'x'.repeat(1_800_000);
  for (let repeat = 0; repeat < 20; repeat++) {
    expect((await post('/v1/completions', { model: 'org/tiny', prompt }, 'wrong')).status).toBe(401);
  }
});

test.each([
  ['/detokenize', 'tokens', (ids: number[]) => ({ tokens: ids })],
  ['/v1/completions', 'prompt', (ids: number[]) => ({ model: 'org/tiny', prompt: ids })],
  ['/v1/completions', 'prompt', (ids: number[]) => ({ model: 'org/tiny', prompt: ['a', ids] })],
  [
    '/v1/score',
    'continuations',
    (ids: number[]) => ({ model: 'org/tiny', prompt: 'a', continuations: [ids] }),
  ],
])('%s refuses more ids than four contexts, and names %s', async (path, field, bodyOf) => {
  const { key } = await tenantWithKey(worker, 'ids');
  const most = 4 * MODEL.contextLength;
  const refused = await post(path, bodyOf(Array.from({ length: most + 1 }, () => 70)), key);
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'array_above_max_length',
      param: field,
      message: `Invalid '${field}': it has more than ${most} elements. Send a simpler body, or several requests.`,
    },
  });
  expect(origin.requests).toEqual([]);
  expect(origin.tokenizerRequests).toEqual([]);
});
