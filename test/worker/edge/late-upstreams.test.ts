import { expect, test } from 'vitest';
import { KEY } from '../support/worker.ts';
import { completion } from './admin-client.ts';
import { promptFor, upstreamsForTests } from './upstreams-for-tests.ts';

const { origins, openAi, worker, another } = upstreamsForTests();
/** Each is asked once, and in time for everything but what its test is about. */
const hurried = another({
  first: { connectMs: 500 },
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

test('an OpenAI-compatible server that accepts and then says nothing gives 504', async () => {
  openAi.script = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
  };
  expect((await completion(hurried, KEY, { model: 'foreign' })).status).toBe(504);
});
