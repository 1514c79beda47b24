import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SIGNATURE_HEADER } from '../../../shared/signing.ts';
import { request } from '../../support/generation-request.ts';
import { RunningOrigin } from './running-origin.ts';

const UNREAD = 64 * 1024;
const TEXT = 'x'.repeat(256 * 1024);

let origin: RunningOrigin;
let reader: Socket;
beforeEach(async () => {
  origin = await RunningOrigin.start({ readerLimits: { unreadBytes: UNREAD, drainMs: 50 } });
  await origin.ready();
  origin.engine.script = () => undefined;
  reader = await readerThatReadsNothing();
});
afterEach(() => {
  reader.destroy();
  origin.stop();
});

async function readerThatReadsNothing(): Promise<Socket> {
  const body = JSON.stringify(request());
  const signature = await origin.signature('POST', '/generate', body);
  const submitted = origin.engine.next();
  const socket = connect(Number(new URL(origin.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.pause();
  socket.on('error', () => undefined);
  socket.write(
    `POST /generate HTTP/1.1\r\nhost: x\r\n${SIGNATURE_HEADER}: ${signature}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await submitted;
  return socket;
}

describe('a reader that takes nothing', () => {
  test('loses its connection while the generation runs, and the generation is aborted', async () => {
    const id = origin.engine.submissions[0]?.requestId ?? '';
    while (origin.engine.aborted.length === 0) {
      origin.engine.say(id, { type: 'token', choice: 0, text: TEXT, completionTokens: 1 });
      await new Promise(setImmediate);
    }
    expect(origin.engine.aborted).toEqual([id]);
    await origin.service.whenIdle();
  });

  test('loses its connection some time after the last event', async () => {
    await new Promise(setImmediate);
    const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
    origin.engine.say(
      origin.engine.submissions[0]?.requestId ?? '',
      { type: 'token', choice: 0, text: TEXT.repeat(64), completionTokens: 1 },
      { type: 'done', usage, timings: { queueMs: 0, promptMs: 0, generationMs: 0 } },
    );
    await origin.service.whenIdle();
    expect(origin.engine.aborted).toEqual([]);
  });
});
