import { get, type IncomingHttpHeaders } from 'node:http';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { KEY } from '../support/worker.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker } = sharedWorker();

const asBrowser = () =>
  fetch(worker.url, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });

/** Addresses of the files that the page loads. */
const filesOf = (html: string) => [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file]) => file!);

test('answers a browser with the page, whose files the Worker serves', async () => {
  const answer = await asBrowser();
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const files = filesOf(await answer.text());
  expect(files.map((file) => path.extname(file))).toEqual(expect.arrayContaining(['.js', '.css', '.svg']));
  for (const file of files) {
    const { status, headers } = await fetch(worker.url + file);
    expect([file, status, headers.get('cache-control')]).toEqual([
      file,
      200,
      expect.stringContaining('immutable'),
    ]);
  }
});

test('the page runs no inline script, no eval, and nothing of another host', async () => {
  const answer = await asBrowser();
  const policy = answer.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self';");
  expect(policy).not.toMatch(/unsafe|\*|https?:/);
  expect(await answer.text()).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|https?:/);
});

test('serves the documentation at each of its addresses, under the same policy', async () => {
  const [start, ...others] = await Promise.all(
    ['/', '/docs', '/docs/guides/models', '/docs/api/createCompletion'].map((path) =>
      fetch(worker.url + path, { headers: { accept: 'text/html' } }),
    ),
  );
  for (const answer of others) {
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(answer.headers.get('content-security-policy')).toBe(start!.headers.get('content-security-policy'));
    expect(await answer.text()).toContain('Guides and API reference');
  }
});

test('browsers ask for the service worker anew, under a policy that lets it load only from its server', async () => {
  const { headers } = await fetch(`${worker.url}/service-worker.js`);
  expect([headers.get('cache-control'), headers.get('content-type')]).toEqual([
    'no-cache',
    expect.stringContaining('javascript'),
  ]);
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; connect-src 'self';/);
});

test('an unknown file of the page is a 404', async () => {
  const answer = await fetch(`${worker.url}/assets/none.js`);
  expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
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

/** The raw answer: `fetch` would decode it. */
const rawAnswer = (file: string, accepted: string) =>
  new Promise<{ readonly headers: IncomingHttpHeaders; readonly body: Buffer }>((resolve, reject) => {
    const asked = { accept: 'text/html', 'accept-encoding': accepted };
    get(worker.url + file, { headers: asked }, (response) => {
      buffer(response).then((body) => resolve({ headers: response.headers, body }), reject);
    }).on('error', reject);
  });

test('sends the page, its files and the API description compressed to clients that accept it', async () => {
  const files = filesOf(await (await asBrowser()).text());
  for (const file of ['/', '/docs', '/openapi.json', ...files]) {
    const [plain, gzipped, refused] = await Promise.all([
      rawAnswer(file, 'identity'),
      rawAnswer(file, 'br, gzip'),
      rawAnswer(file, 'gzip;q=0'),
    ]);
    expect([file, plain.headers['content-encoding']]).toEqual([file, undefined]);
    expect([file, gzipped.headers['content-encoding']]).toEqual([file, 'gzip']);
    expect([file, refused.headers['content-encoding']]).toEqual([file, undefined]);
    expect(gunzipSync(gzipped.body).equals(plain.body)).toBe(true);
    expect(gzipped.headers.vary).toContain('accept-encoding');
    expect(gzipped.headers['content-security-policy']).toBe(plain.headers['content-security-policy']);
  }
});
