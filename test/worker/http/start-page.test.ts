import { expect, test } from 'vitest';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests();

test('answers a browser with a page that has a request to try and links', async () => {
  const answer = await fetch(worker.url, {
    headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
  });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const text = await answer.text();
  expect(text).toContain(`curl ${new URL(worker.url).origin}/v1/completions`);
  for (const link of ['/openapi.json', '/v1/models']) expect(text).toContain(`href="${link}"`);
});

test('answers other clients with links as JSON', async () => {
  const { origin } = new URL(worker.url);
  const body = await (await fetch(worker.url)).json();
  expect(body).toMatchObject({ base_url: `${origin}/v1`, links: { models: `${origin}/v1/models` } });
});

test.each([
  ['POST', '/completions', '/v1/completions'],
  ['GET', '/models', '/v1/models'],
  ['POST', '//v1/completions', '/v1/completions'],
  ['POST', '/v1/v1/completions', '/v1/completions'],
  ['POST', '//tokenize', '/tokenize'],
])('names the right URL for %s %s', async (method, path, right) => {
  const answer = await worker.request(path, { method });
  const { error } = (await answer.json()) as { error: { code: string; message: string } };
  expect([answer.status, error.code]).toEqual([404, 'unknown_url']);
  expect(error.message).toContain(`Use ${right} instead.`);
});

test.each(['api-key', 'x-api-key'])('accepts the key in the header %s', async (name) => {
  const models = (key: string) => fetch(`${worker.url}/v1/models`, { headers: { [name]: key } });
  expect((await models(KEY)).status).toBe(200);
  expect((await models('wrong')).status).toBe(401);
});
