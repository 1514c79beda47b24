import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SIGNATURE_HEADER, secretId } from '../../../shared/signing.ts';
import { request } from '../../support/generation-request.ts';
import { originForEachTest, RunningOrigin, SECRET } from './running-origin.ts';

const origin = originForEachTest();

describe('signatures', () => {
  const refused = { status: 401, code: 'invalid_api_key' };
  const paths = ['/generate', '/tokenize', '/detokenize', '/tokenizer_info', '/models'];
  const verb = (path: string) => (['/tokenizer_info', '/models'].includes(path) ? 'GET' : 'POST');

  test.each(paths)('%s refuses unsigned requests', async (path) => {
    const call = { method: verb(path), signature: null };
    expect(await origin.error(path, call)).toMatchObject(refused);
    expect(await origin.error(path, { ...call, signature: 'v2.nonsense' })).toMatchObject(refused);
  });

  test('a signature is valid only for its method, path, query and body', async () => {
    const body = JSON.stringify(request());
    const signed = (method: string, path: string, text: string) => origin.signature(method, path, text);
    for (const signature of [
      await signed('PUT', '/generate', body),
      await signed('POST', '/tokenize', body),
      await signed('POST', '/generate?x=1', body),
      await signed('POST', '/generate', `${body} `),
    ]) {
      expect(await origin.error('/generate', { body, signature })).toMatchObject(refused);
    }
    const signature = await signed('POST', '/generate', body);
    expect((await origin.call('/generate', { body, signature })).status).toBe(200);
  });

  test('a wrong signature is refused before the body arrives', async () => {
    const right = await origin.signature('POST', '/generate', 'x');
    const wrong = right.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
    const socket = connect(Number(new URL(origin.url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(
      `POST /generate HTTP/1.1\r\nhost: x\r\n${SIGNATURE_HEADER}: ${wrong}\r\ncontent-length: 1\r\n\r\n`,
    );
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 401 /);
  });

  test('two secrets are accepted, by their ids or without one, and no third one', async () => {
    const next = 'the next secret of the tests, 32 bytes';
    const rotating = await RunningOrigin.start({ secrets: [SECRET, next] });
    onTestFinished(() => rotating.stop());
    await rotating.ready();
    const statusOf = async (secret: string, id?: string) => {
      const signature = await rotating.signature('GET', '/models', '', Date.now(), randomUUID(), secret);
      const named = id === undefined ? {} : { secretId: id };
      return (await rotating.call('/models', { signature, ...named })).status;
    };
    for (const secret of [SECRET, next]) {
      expect([await statusOf(secret), await statusOf(secret, await secretId(secret))]).toEqual([200, 200]);
    }
    expect(await statusOf(SECRET, await secretId(next))).toBe(401);
    const third = 'a third secret of the tests, 32 bytes';
    expect([await statusOf(third), await statusOf(third, await secretId(third))]).toEqual([401, 401]);
    expect(rotating.logLines.join('')).toContain(
      `"secret":"${await secretId(third)}","msg":"unknown secret"`,
    );
  });

  test('a timestamp more than 60 s in the past or future is refused', async () => {
    const now = Date.UTC(2100, 0, 31);
    const standing = await RunningOrigin.start({ now: () => now });
    onTestFinished(() => standing.stop());
    await standing.ready();
    for (const [age, status] of [
      [-60_000, 200],
      [-60_001, 401],
      [60_000, 200],
      [60_001, 401],
    ] as const) {
      const signature = await standing.signature('GET', '/models', '', now + age);
      expect([age, (await standing.call('/models', { signature })).status]).toEqual([age, status]);
    }
    const skews = standing.logLines.filter((line) => line.includes('"msg":"clock skew"'));
    const secret = await secretId(SECRET);
    expect(skews.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'warn', secret, skewMs: -60_001 },
      { level: 'warn', secret, skewMs: 60_001 },
    ]);
  });

  test('a replay is refused', async () => {
    const signature = await origin.signature('GET', '/models', '');
    expect((await origin.call('/models', { signature })).status).toBe(200);
    expect(await origin.error('/models', { signature })).toMatchObject(refused);
  });
});
