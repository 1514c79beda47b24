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
/** Each short timeout is the subject of one test. */
const impatient = another({
  first: { connectMs: 500 },
  second: { idleMs: 1_000 },
  foreign: { firstEventMs: 400 },
});
/** Its clock is turned by the test, because a busy machine may pause for longer than these timeouts. */
const timed = another(
  { first: { idleMs: 2_000 }, second: { idleMs: 1_000 } },
  { entry: 'test/worker/support/standing-clock.ts' },
);
const early = another({}, {}, { EARLY_ANSWER_MS: '100' });
const turnClock = (ms: number) => timed.request('/health', { headers: { 'x-now': String(START + ms) } });
const START = Date.UTC(2100, 0, 1);

test('sends the request to the other origin after the accept timeout of the first', async () => {
  const prompt = await promptFor(origins[0], worker);
  origins[0].script = (_, wire) => wire.closed;
  const { status, headers } = await completion(impatient, KEY, { prompt });
  expect(status).toBe(200);
  const total = Number(/total;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1]);
  expect(total).toBeGreaterThanOrEqual(500);
});

test('a plain request whose origin is silent for longer than idleMs fails with 504', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = async (request, wire) => {
    wire.send(
      { type: 'accepted', model: request.model, promptTokens: [2] },
      { type: 'token', choice: 0, text: 'x', completionTokens: 1 },
    );
    await wire.closed;
  };
  const { status, body } = await completion(impatient, KEY, { prompt });
  expect([status, body.error.code]).toEqual([504, 'upstream_timeout']);
});

const TOKENS = 300;

/** Sends more events than all buffers between origin and client hold. */
const manyEvents: Script = (request, wire) => {
  wire.send(...acceptedFor(request));
  for (let token = 1; token <= TOKENS; token += 1) wire.send(tokenEvent(token, 'x'.repeat(64 * 1024)));
  wire.send(finishOf(0, 'length', TOKENS), doneFor(request, TOKENS));
  wire.end();
};

test('a stream whose origin is silent for longer than idleMs ends with an error event', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1));
    await wire.closed;
  };
  const answer = await impatient.post({ model: 'org/tiny', prompt, max_tokens: 4, stream: true });
  expect(payloadsOf(await answer.text())).toMatchObject([
    { choices: [{ text: ' t1' }] },
    { error: { code: 'upstream_timeout' } },
  ]);
});

test('a stream that waits for longer than idleMs continues while heartbeats arrive', async () => {
  const prompt = await promptFor(origins[0], worker);
  origins[0].script = async (request, wire) => {
    wire.send(...acceptedFor(request));
    for (let beats = 1; beats <= 9; beats += 1) {
      await sleep(300);
      await turnClock(300 * beats);
      await wire.raw('\n');
    }
    wire.send(tokenEvent(1), finishOf(0, 'length', 1), doneFor(request, 1));
    wire.end();
  };
  await turnClock(0);
  const answer = await timed.post({ model: 'org/tiny', prompt, max_tokens: 1, stream: true });
  expect(chunksOf(await answer.text())).toHaveLength(2);
});

test('a client that reads nothing for longer than idleMs still gets the whole stream', async () => {
  const prompt = await promptFor(origins[1], worker);
  origins[1].script = manyEvents;
  await turnClock(0);
  const { response } = await openStream(timed, { model: 'org/tiny', prompt });
  await sleep(1_500);
  await turnClock(1_500);
  // Each timer has had the time to fire.
  await sleep(1_500);
  let seen = '';
  for await (const part of response) seen += String(part);
  expect(chunksOf(seen)).toHaveLength(TOKENS + 1);
});

test('an OpenAI-compatible server that accepts a request and sends nothing gives 504', async () => {
  openAi.script = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
  };
  expect((await completion(impatient, KEY, { model: 'foreign', stream: true })).status).toBe(504);
});

test('a 400 of an OpenAI-compatible server after the answer has begun breaks a plain answer and ends a stream as an event', async () => {
  const begun = Promise.withResolvers<void>();
  openAi.script = async (_, response) => {
    await begun.promise;
    const error = { message: 'Too many stops.', type: 'invalid_request_error', param: 'stop', code: null };
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  };
  const ask = (stream: boolean) => early.post({ model: 'foreign', prompt: 'Hi', stream });
  const [plain, streamed] = await Promise.all([ask(false), ask(true)]);
  begun.resolve();
  expect([plain.status, streamed.status]).toEqual([200, 200]);
  await expect(plain.text()).rejects.toThrow();
  expect(payloadsOf(await streamed.text())).toMatchObject([{ error: { param: 'stop' } }]);
});
