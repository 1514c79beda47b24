import { expect, test } from 'vitest';
import { completion } from '../admin/admin-client.ts';
import { payloadsOf } from '../support/sse.ts';
import { KEY } from '../support/worker.ts';
import { promptFor, upstreamsForTests } from './upstreams-for-tests.ts';

const { origins, openAi, worker, another } = upstreamsForTests();
/** Each short timeout is the subject of one test. */
const impatient = another({
  first: { connectMs: 500 },
  second: { idleMs: 1_000 },
  foreign: { firstEventMs: 400 },
});
const early = another({}, {}, { EARLY_ANSWER_MS: '100' });

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
