import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { completion } from '../admin/admin-client.ts';
import type { Script } from '../support/fake-origin.ts';
import { openStream } from '../support/raw-request.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../support/scripts.ts';
import { chunksOf, payloadsOf } from '../support/sse.ts';
import { KEY } from '../support/worker.ts';
import { promptFor, upstreamsForTests } from './upstreams-for-tests.ts';

const { origins, openAi, worker, another } = upstreamsForTests();
/** Each is asked once, and in time for everything but what its test is about. */
const hurried = another({
  first: { connectMs: 500, idleMs: 2000 },
  second: { idleMs: 400 },
  foreign: { firstEventMs: 400 },
});

test('an origin that does not answer in its own time is given up for the other one', async () => {
  const prompt = await promptFor(origins[0], worker);
  origins[0].script = (_, wire) => wire.closed;
  const { status, headers } = await completion(hurried, KEY, { prompt });
  expect(status).toBe(200);
  const total = Number(/total;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1]);
  expect(total).toBeGreaterThanOrEqual(500);
});

test('an origin that falls silent longer than its own limit allows ends with 504', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = async (request, wire) => {
    wire.send(
      { type: 'accepted', model: request.model, promptTokens: [2] },
      { type: 'token', choice: 0, text: 'x', completionTokens: 1 },
    );
    await wire.closed;
  };
  const { status, body } = await completion(hurried, KEY, { prompt });
  expect([status, body.error.code]).toEqual([504, 'upstream_timeout']);
});

const TOKENS = 300;

/** A written stream of many events: more than lies between origin and caller. */
const manyEvents: Script = (request, wire) => {
  wire.send(...acceptedFor(request));
  for (let token = 1; token <= TOKENS; token += 1) wire.send(tokenEvent(token, 'x'.repeat(64 * 1024)));
  wire.send(finishOf(0, 'length', TOKENS), doneFor(request, TOKENS));
  wire.end();
};

test('an origin that falls silent in the middle of a written stream ends it with an error event', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1));
    await wire.closed;
  };
  const answer = await hurried.post({ model: 'org/tiny', prompt, max_tokens: 4, stream: true });
  expect(payloadsOf(await answer.text())).toMatchObject([
    { choices: [{ text: ' t1' }] },
    { error: { code: 'upstream_timeout' } },
  ]);
});

test('an origin that writes, but never tells of a generation, ends with an error event', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = async (_, wire) => {
    while (!wire.gone()) {
      await wire.raw(': hello\n\n');
      await sleep(50);
    }
  };
  const answer = await hurried.post({ model: 'org/tiny', prompt, max_tokens: 4, stream: true });
  expect(payloadsOf(await answer.text())).toMatchObject([{ error: { code: 'upstream_timeout' } }]);
});

test('a request that waits long at its origin gets its written stream as long as there are signs of life', async () => {
  const prompt = await promptFor(origins[0], worker);
  origins[0].script = async (request, wire) => {
    wire.send(...acceptedFor(request));
    for (let sign = 0; sign < 9; sign += 1) {
      await sleep(300);
      // Time for another account, in which nothing is new.
      wire.send({ type: 'started', prompt: 0, cachedTokens: 0, queueMs: 1 });
    }
    wire.send(tokenEvent(1), finishOf(0, 'length', 1), doneFor(request, 1));
    wire.end();
  };
  const answer = await hurried.post({ model: 'org/tiny', prompt, max_tokens: 1, stream: true });
  expect(chunksOf(await answer.text())).toHaveLength(2);
});

test('a caller who reads nothing for longer than an origin may be silent still gets all of a written stream', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = manyEvents;
  const { response } = await openStream(hurried, { model: 'org/tiny', prompt });
  await sleep(1500);
  let seen = '';
  for await (const part of response) seen += String(part);
  expect(chunksOf(seen)).toHaveLength(TOKENS + 1);
});

test('an OpenAI-compatible server that accepts and then says nothing gives 504', async () => {
  openAi.script = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
  };
  expect((await completion(hurried, KEY, { model: 'foreign' })).status).toBe(504);
});
