import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openStream, reset, sendRaw } from '../support/raw-request.ts';
import { assemble, blocksOf, type Chunk, chunksOf } from '../support/sse.ts';
import { sse } from './fake-openai.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker } = upstreamsForTests();

/** So fast that the platform reads ahead. Each event is an HTTP chunk of its own. */
const EVENTS = 2000;

const event = (text: string, finish_reason: string | null = null): string =>
  sse({ choices: [{ index: 0, text, logprobs: null, finish_reason }] });

const words = Array.from({ length: EVENTS }, (_, index) => ` ${index}`);

function open(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const word of words) response.write(event(word));
}

const end = (response: ServerResponse): void => {
  response.write(event('', 'stop'));
  response.end('data: [DONE]\n\n');
};

const textOf = (seen: string): string =>
  blocksOf(seen)
    .filter((block) => block.startsWith('data: {') && block.endsWith('}'))
    .map((block) => (JSON.parse(block.slice('data: '.length)) as Partial<Chunk>).choices?.[0]?.text ?? '')
    .join('');

test('no event of a fast stream waits for what follows a pause, and none is lost or moved', async () => {
  const heard = Promise.withResolvers<void>();
  openAi.script = async (_, response) => {
    open(response);
    await heard.promise;
    for (let index = 0; index < 5; index += 1) {
      response.write(event('.'));
      await sleep(20);
    }
    end(response);
  };
  const { response } = await openStream(worker, { model: 'foreign' });
  let seen = '';
  for await (const part of response) {
    seen += String(part);
    if (seen.includes(` ${EVENTS - 1}"`)) heard.resolve();
  }
  expect(assemble(chunksOf(seen))).toMatchObject([{ text: `${words.join('')}.....`, finish_reason: 'stop' }]);
});

async function answerTo(fields: Readonly<Record<string, unknown>>): Promise<readonly Chunk[]> {
  openAi.script = (_, response) => {
    open(response);
    end(response);
  };
  const { response } = await openStream(worker, { model: 'foreign', ...fields });
  let seen = '';
  for await (const part of response) seen += String(part);
  return chunksOf(seen);
}

test('texts of a fast stream that arrive together share an event, and each counts as a token', async () => {
  const chunks = await answerTo({ stream_options: { include_usage: true } });
  expect(chunks.length).toBeLessThan(EVENTS / 2);
  expect(assemble(chunks)).toMatchObject([{ text: words.join(''), finish_reason: 'stop' }]);
  expect(chunks.at(-1)?.usage?.completion_tokens).toBe(EVENTS);
});

test('texts of a fast stream come one by one if the request limits the tokens of an event', async () => {
  const chunks = await answerTo({ stream_interval: 1 });
  expect(chunks.filter(({ choices }) => choices[0]?.text)).toHaveLength(EVENTS);
});

test('if the connection of a fast stream breaks, the client gets all events before the error', async () => {
  openAi.script = async (_, response) => {
    open(response);
    // What a reset overtakes is lost in the sockets.
    await sleep(500);
    response.destroy();
  };
  const { response } = await openStream(worker, { model: 'foreign' });
  let seen = '';
  for await (const part of response) seen += String(part);
  expect(textOf(seen)).toBe(words.join(''));
  expect(seen).toContain('"code":"upstream_error"');
});

test('a client that leaves a fast stream ends the work of the server', async () => {
  const accepted = Promise.withResolvers<ServerResponse>();
  openAi.script = (_, response) => {
    open(response);
    accepted.resolve(response);
  };
  const request = sendRaw(worker, { model: 'foreign', stream: true });
  const upstream = await accepted.promise;
  const closed = once(upstream, 'close');
  const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream];
  await once(response, 'data');
  reset(request);
  await closed;
});

test('a client that does not read a fast stream stops the server', async () => {
  const accepted = Promise.withResolvers<ServerResponse>();
  openAi.script = (_, response) => {
    open(response);
    accepted.resolve(response);
  };
  const request = sendRaw(worker, { model: 'foreign', stream: true });
  const upstream = await accepted.promise;
  await once(request, 'response');
  const mebibyte = event('x'.repeat(1024)).repeat(1024);
  // The sockets hold some mebibytes.
  for (let sent = 0; sent < 64; sent += 1) upstream.write(mebibyte);
  await sleep(1000);
  expect(upstream.writableLength).toBeGreaterThan(8 * 2 ** 20);
  reset(request);
});
