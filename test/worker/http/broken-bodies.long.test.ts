import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests();

/** Sends a body that breaks off and returns the response. */
async function answerTo(header: string, body: string): Promise<string> {
  const { hostname, port } = new URL(worker.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.end(
    `POST /v1/completions HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${KEY}\r\n` +
      `Content-Type: application/json\r\nConnection: close\r\n${header}\r\n\r\n${body}`,
  );
  return text(socket);
}

test.each([
  ['shorter than its length', 'Content-Length: 100', '{"model":'],
  ['whose chunk has no length', 'Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'],
  ['whose last chunk is missing', 'Transfer-Encoding: chunked', '2\r\n{}\r\n'],
])('rejects a body %s as incomplete, not as invalid text', async (_, header, body) => {
  const answer = await answerTo(header, body);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain('"code":"invalid_json"');
  expect(answer).toContain('the body is incomplete');
});

test.each([{}, { 'idempotency-key': 'a' }])('rejects a compressed body with 415 (%o)', async (more) => {
  const answer = await worker.request('/v1/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip', ...more },
    body: gzipSync('{"model":"default","prompt":"x"}'),
  });
  expect(answer.status).toBe(415);
  const { error } = (await answer.json()) as { error: { code: string; message: string } };
  expect(error).toMatchObject({ code: 'unsupported_media_type' });
  expect(error.message).toContain("Unsupported Content-Encoding: 'gzip'");
});

describe('bodies that an isolate holds at the same time', () => {
  const { worker: small } = workerForTests({
    MAX_BODY_BYTES: '2000',
    MAX_HELD_BODY_BYTES: '3000',
    ADMIN_KEY_SHA256,
  });

  test('are refused with 503 beyond their limit, until the others have gone', async () => {
    const { key: other } = await tenantWithKey(small, 'other');
    const { hostname, port } = new URL(small.url);
    const begin = (): Socket => {
      const socket = connect(Number(port), hostname).resume();
      socket.write(
        `POST /v1/completions HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${KEY}\r\n` +
          'Content-Type: application/json\r\nContent-Length: 1900\r\n\r\n{',
      );
      return socket;
    };
    let slow = begin();
    const send = (key: string, prompt: string) =>
      small.post({ model: 'org/tiny', prompt }, { headers: { authorization: `Bearer ${key}` } });
    const large = 'x'.repeat(1000);
    const refused = await eventually(
      () => {
        // A slow request that came second was refused itself.
        if (slow.closed) slow = begin();
        return send(KEY, large);
      },
      ({ status }) => status !== 200,
    );
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await send(other, large)).status).toBe(200);
    slow.destroy();
    await eventually(
      () => send(KEY, large),
      ({ status }) => status === 200,
    );
  });

  test.each([
    ['an idempotency key', { 'idempotency-key': 'large' }, false],
    ['a resumable stream', { 'x-resumable': 'true' }, true],
  ])('count once with %s', async (_, headers, stream) => {
    const prompt = 'x'.repeat(1700);
    const { status } = await small.post({ model: 'org/tiny', prompt, stream }, { headers });
    expect(status).toBe(200);
  });
});
