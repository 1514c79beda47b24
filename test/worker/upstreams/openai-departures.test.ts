import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { reset, sendRaw } from '../support/raw-request.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker, another } = upstreamsForTests();
const early = another({}, {}, { EARLY_ANSWER_MS: '100' });

test.each([
  ['accepts a stream', true],
  ['receives a plain request', false],
])(
  'a client that disconnects after the server %s is billed the prompt estimate, and the server is aborted',
  async (_, stream) => {
    const tenant = `departed-${stream}`;
    const { key } = await tenantWithKey(early, tenant);
    const accepted = Promise.withResolvers<ServerResponse>();
    openAi.script = (_body, response) => {
      if (stream) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      accepted.resolve(response);
    };
    const body = { model: 'foreign', prompt: 'four times ten characters in this prompt', stream };
    const request = sendRaw(early, body, { authorization: `Bearer ${key}` });
    const response = await accepted.promise;
    // The response begins before the first event, because that takes long.
    if (stream) await once(request, 'response');
    const closed = once(response, 'close');
    reset(request);
    await closed;
    const { body: usage } = await eventually(
      () => admin(early, 'GET', `/usage?tenant=${tenant}`),
      (answer) => answer.body.total.requests === 1,
    );
    expect(usage.total).toMatchObject({ cancelled: 1, prompt_tokens: 10, completion_tokens: 0 });
  },
);

test('a server that fails before its first event is not billed', async () => {
  const { key } = await tenantWithKey(worker, 'failed-early');
  openAi.script = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    response.destroy();
  };
  const headers = { authorization: `Bearer ${key}` };
  const answer = await worker.post({ model: 'foreign', prompt: 'Hi', stream: true }, { headers });
  expect(answer.status).toBe(502);
  const { body } = await eventually(
    () => admin(worker, 'GET', '/usage?tenant=failed-early'),
    (usage) => usage.body.total.requests === 1,
  );
  expect(body.total).toMatchObject({ failed: 1, prompt_tokens: 0 });
});
