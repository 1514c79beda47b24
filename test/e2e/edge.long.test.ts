import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serve } from '../support/local-server.ts';
import { newDirectory } from '../support/new-directory.ts';
import { exitOf, freePort, launch } from '../support/system.ts';

const CONTINUO = path.resolve('origin/cli/continuo.js');

/** Runs `continuo edge` and `continuo origin` until the test ends. Returns the endpoint's address. */
async function startHost(state: string, secrets: string) {
  const [port, originPort] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${originPort}`;
  const args = ['--origin', origin, '--state', state, '--secrets', secrets];
  const edge = launch({ CONTINUO_PORT: String(port) }, [CONTINUO, 'edge', ...args]);
  await expect.poll(edge.output).toContain(`Listening on http://127.0.0.1:${port}`);
  const variables = {
    CONTINUO_ORIGIN_PORT: String(originPort),
    CONTINUO_ORIGIN_SECRET_FILE: path.join(secrets, 'origin-secret'),
    CONTINUO_DRAIN_SECONDS: '0',
  };
  const { child, output } = launch(variables, [CONTINUO, 'origin']);
  const stop = async () => {
    for (const one of [child, edge.child]) {
      one.kill('SIGTERM');
      await exitOf(one);
    }
  };
  onTestFinished(stop);
  await expect.poll(output).toContain('"msg":"loaded"');
  return { url: `http://127.0.0.1:${port}`, stop };
}

const complete = (url: string, key: string) =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', prompt: 'Once', max_tokens: 2, ignore_eos: true }),
  });

test('one host serves tenants without Cloudflare, keeps them over a restart, and lets only its user read secrets', async () => {
  const [state, secrets] = [newDirectory(), path.join(newDirectory(), 'secrets')];
  const first = await startHost(state, secrets);
  const adminKey = path.join(secrets, 'admin-key');
  for (const name of ['admin-key', 'origin-secret', 'key-id-secret'])
    expect(statSync(path.join(secrets, name)).mode & 0o777).toBe(0o600);
  const admin = (...args: string[]) =>
    execFileSync(process.execPath, [CONTINUO, '--url', first.url, '--key-file', adminKey, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  admin('tenants', 'create', '--id', 'acme', '--name', 'Acme');
  const key = admin('keys', 'create', '--tenant', 'acme', '--name', 'first').trim();
  expect((await complete(first.url, key)).status).toBe(200);
  expect((await complete(first.url, readFileSync(adminKey, 'utf8').trim())).status).toBe(403);
  const { headers } = await complete(first.url, key);
  const recordStatus = async ({ url }: { readonly url: string }) => {
    const path = `/v1/requests/${headers.get('x-request-id')}`;
    return (await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })).status;
  };
  await expect.poll(() => recordStatus(first)).toBe(200);
  await first.stop();
  const second = await startHost(state, secrets);
  const answer = await complete(second.url, key);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 2 } });
  // The ledger of the tenant is in the state directory, too.
  expect(await recordStatus(second)).toBe(200);
});

test('an edge whose port is taken ends, so that it can be started again', async () => {
  const { port, stop } = await serve(() => {});
  onTestFinished(stop);
  const folders = ['--state', newDirectory(), '--secrets', newDirectory()];
  const args = ['--origin', 'http://127.0.0.1:1', ...folders, '--port', String(port)];
  const { child, output } = launch({}, [CONTINUO, 'edge', ...args]);
  expect(await exitOf(child)).toBe(1);
  expect(output()).toContain('Address already in use');
});
