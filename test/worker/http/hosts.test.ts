import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';

const log = new WorkerdLog(/./);
const { worker } = workerForTests({ LOG_REQUESTS: 'true' }, { log });

/** Sends these Host lines and returns the answer. */
async function answerTo(...hosts: readonly string[]): Promise<string> {
  const socket = connect(Number(new URL(worker.url).port), '127.0.0.1');
  socket.write(
    `POST /v1/completions HTTP/1.1\r\n${hosts.join('\r\n')}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`,
  );
  let answer = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    answer += text;
  });
  await once(socket, 'close');
  return answer;
}

test.each([
  ['a space', ['Host: a b']],
  ['two hosts', ['Host: a', 'Host: b']],
  ['half an IPv6 address', ['Host: [::1']],
  ['a port that does not exist', ['Host: a:99999']],
])('answers a Host header of %s with 400 in the error shape, and logs no bug', async (_, hosts) => {
  const before = log.lines.length;
  const answer = await answerTo(...hosts);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer.toLowerCase()).toContain('x-request-id: ');
  expect(JSON.parse(answer.slice(answer.indexOf('{"error"')))).toMatchObject({
    error: { type: 'invalid_request_error', param: 'host', code: 'invalid_value' },
  });
  await expect.poll(() => log.lines.length).toBe(before + 1);
  expect(JSON.parse(log.lines.at(-1)!)).toMatchObject({ event: 'request', status: 400 });
});
