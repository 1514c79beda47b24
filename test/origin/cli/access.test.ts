import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { bypassProxyForLocal, isLocal, localAddress } from '../../../origin/cli/access.ts';
import { readStartSettings } from '../../../origin/cli/start/settings.ts';
import { bareEnvironment } from '../../support/child-processes.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { freePort } from '../../support/system.ts';
import { runCli } from './run-cli.ts';

test.each([
  {},
  { CONTINUO_PORT: '9000' },
  { CONTINUO_HOST: '', CONTINUO_PORT: '' },
  { CONTINUO_HOST: '192.0.2.7' },
  { CONTINUO_HOST: '::1', CONTINUO_PORT: '80' },
])('finds the server of npm start: %o', (environment) => {
  const { url } = readStartSettings(environment);
  expect(localAddress(environment)).toBe(url);
  expect(isLocal(new URL(url), environment)).toBe(true);
});

test('sends the development key to no other machine', () => {
  for (const host of ['api.example.com', '192.0.2.8', '127.0.0.1.example.com']) {
    expect(isLocal(new URL(`https://${host}`), { CONTINUO_HOST: '192.0.2.7' })).toBe(false);
  }
  for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
    expect(isLocal(new URL(`http://${host}:1`), {})).toBe(true);
  }
});

test('without a running server, the command tells to run continuo serve', () => {
  const main = path.resolve(import.meta.dirname, '../../../origin/cli/main.ts');
  const state = newDirectory();
  const continuo = () =>
    spawnSync(process.execPath, [main, 'tenants', 'list'], {
      env: { ...bareEnvironment(), CONTINUO_STATE_DIR: state, CONTINUO_PORT: '1' },
      encoding: 'utf8',
    });
  expect(continuo()).toMatchObject({
    status: 1,
    stderr:
      'continuo: There is no admin key. Run continuo serve, which creates one, or set CONTINUO_ADMIN_KEY.\n',
  });
  writeFileSync(path.join(state, 'development.json'), '{"apiKey":"a key","originSecret":"a secret"}');
  expect(continuo()).toMatchObject({
    status: 3,
    stderr:
      'continuo: No server answers at http://127.0.0.1:1. Run continuo serve, or name another server in CONTINUO_URL.\n',
  });
});

test('a server that cannot be reached is named with the reason', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { code, stderr } = await runCli(['--url', url, 'models'], {
    environment: { CONTINUO_API_KEY: 'a key' },
  });
  expect(code).toBe(3);
  expect(stderr).toContain(`No server answers at ${url} (ECONNREFUSED).`);
});

test('a key that no request can carry is refused by its place, and an empty key file finds no other key', async () => {
  const file = path.join(newDirectory(), 'key');
  writeFileSync(file, '\n');
  const environment = { CONTINUO_API_KEY: 'sk-“copied”' };
  const refused = await Promise.all([
    runCli(['models'], { environment }),
    runCli(['--key-file', file, 'models'], { environment: { CONTINUO_API_KEY: 'a key' } }),
  ]);
  expect(refused).toMatchObject([
    { code: 1, stderr: 'continuo: CONTINUO_API_KEY must be the key: one line of ASCII characters.\n' },
    { code: 1, stderr: `continuo: ${file} must be the key: one line of ASCII characters.\n` },
  ]);
});

test.each([
  [{}, { NO_PROXY: '127.0.0.1,127.0.0.1,localhost,[::1]' }],
  [{ NO_PROXY: 'intern' }, { NO_PROXY: 'intern,127.0.0.1,127.0.0.1,localhost,[::1]' }],
  [{ no_proxy: '' }, { no_proxy: '127.0.0.1,127.0.0.1,localhost,[::1]' }],
  [{ NO_PROXY: '*' }, { NO_PROXY: '*' }],
  [{ CONTINUO_HOST: '10.0.0.8' }, { NO_PROXY: '10.0.0.8,127.0.0.1,localhost,[::1]' }],
  [{ NODE_USE_ENV_PROXY: '0' }, {}],
])('the proxy of NODE_USE_ENV_PROXY gets no request to this machine: %o', (given, expected) => {
  const environment: Record<string, string | undefined> = { NODE_USE_ENV_PROXY: '1', ...given };
  bypassProxyForLocal(environment);
  expect(environment).toEqual({ NODE_USE_ENV_PROXY: '1', ...given, ...expected });
});
