import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PROTOCOL_VERSION } from '../../../shared/generation.ts';
import { SIGNATURE_HEADER } from '../../../shared/signing.ts';
import { request } from '../../support/generation-request.ts';
import { originForEachTest, RunningOrigin } from './running-origin.ts';

const origin = originForEachTest();

/** Sends bytes, and returns the first ones of the answer. */
const answerTo = ({ url }: RunningOrigin, bytes: string) =>
  new Promise<string>((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    socket.once('data', (data) => resolve(data.toString()));
  });

describe('refusals', () => {
  test.each([
    ['an unknown path', '/nothing', { body: {} }, 404, 'unknown_url'],
    ['bad JSON', '/generate', { body: '{' }, 502, 'protocol_mismatch'],
    ['an empty body', '/generate', { body: '' }, 502, 'protocol_mismatch'],
    ['a body of the wrong shape', '/generate', { body: [] }, 502, 'protocol_mismatch'],
    [
      'another protocol version',
      '/generate',
      { body: { ...request(), version: PROTOCOL_VERSION + 1 } },
      502,
      'protocol_mismatch',
    ],
    ['an unknown model', '/generate', { body: request({ model: 'x' }) }, 404, 'model_not_found'],
  ] as const)('%s', async (_, path, call, status, code) => {
    expect(await origin.error(path, call)).toMatchObject({ status, code });
  });

  test('an invalid field is named by its path', async () => {
    const wrong = { ...request(), sampling: { ...request().sampling, temperature: -1 } };
    const error = await origin.error('/generate', { body: wrong });
    expect(error).toMatchObject({ status: 502, param: 'sampling.temperature' });
  });

  test('a wrong method is refused with the right one in allow', async () => {
    const error = await origin.error('/generate');
    expect(error).toMatchObject({ status: 405, code: 'method_not_supported' });
    expect(error.headers.get('allow')).toBe('POST');
  });

  test('a body above 8 MiB, announced or not, is 413', async () => {
    const body = 'x'.repeat(8 * 2 ** 20 + 1);
    expect(await origin.error('/generate', { body })).toMatchObject({
      status: 413,
      code: 'request_too_large',
    });
    const signature = await origin.signature('POST', '/generate', body);
    const chunked = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(origin.url).port), '127.0.0.1', () => {
        socket.write('POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n');
        socket.write(`${SIGNATURE_HEADER}: ${signature}\r\n\r\n`);
        for (let i = 0; i < 9; i += 1) socket.write(`100000\r\n${'x'.repeat(2 ** 20)}\r\n`);
      });
      socket.once('data', (data) => {
        resolve(data.toString());
        socket.destroy();
      });
      socket.on('error', () => undefined);
    });
    expect(chunked).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('a client that disconnects within its body counts neither as refused nor as failed', async () => {
    const signature = await origin.signature('POST', '/generate', '{');
    const socket = connect(Number(new URL(origin.url).port), '127.0.0.1', () => {
      const head = 'POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n';
      const request = `${head}${SIGNATURE_HEADER}: ${signature}\r\n\r\n{`;
      socket.write(request, () => socket.destroy());
    });
    const arrived = async () => (await origin.metrics.registry.metrics()).includes('status="none"');
    await expect.poll(arrived).toBe(true);
    await origin.error('/generate', { body: '{' });
    const told = origin.logLines.map((line) => (JSON.parse(line) as { status?: number }).status);
    expect(told.filter((status) => status !== undefined)).toEqual([502]);
  });

  test('a body that does not arrive in time is 408', async () => {
    origin.stop();
    const timeouts = {
      headersTimeout: 50,
      requestTimeout: 50,
      connectionsCheckingInterval: 10,
      keepAliveTimeout: 0,
    };
    const impatient = await RunningOrigin.start({ timeouts });
    onTestFinished(() => impatient.stop());
    const signature = await impatient.signature('POST', '/generate', '{');
    const head = `POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n${SIGNATURE_HEADER}: ${signature}\r\n\r\n`;
    const answer = await answerTo(impatient, `${head}{`);
    expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
  });

  test('malformed HTTP gets an error envelope', async () => {
    const answer = await answerTo(origin, 'nonsense\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_value"/);
  });

  test('CONNECT gets a 400 in the error shape', async () => {
    const answer = await answerTo(origin, 'CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_value"/);
  });
});
