import { expect, test } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { runCli } from './run-cli.ts';

/** Answers every request with one body. */
const answering =
  (body: unknown): typeof fetch =>
  async () =>
    Response.json(body);

const environment = { CONTINUO_URL: 'http://server.example', CONTINUO_ADMIN_KEY: 'admin' };
const tenants = {
  data: [
    {
      id: 'a',
      name: 'A\tand\nB',
      plan: null,
      limits: { requests_per_minute: 5, tokens_per_day: null },
      created_at: 0,
    },
    { id: 'b', name: 'B', weight: 2 },
  ],
};

test('a list in a pipe has one line per entry and a tab between columns, which are always the same', async () => {
  const { stdout, stderr } = await runCli(['tenants', 'list'], { environment, fetch: answering(tenants) });
  expect(stdout).toBe(
    'a\tA and B\t\trequests_per_minute=5, tokens_per_day=none\t\t\t\t\t\t\t\t1970-01-01T00:00:00Z\nb\tB\t\t\t2\t\t\t\t\t\t\t\n',
  );
  expect(stderr).toBe(
    'id\tname\tplan\tlimits\tweight\tdialect\topen_objects\tany_key_order\twait_for_tokens\taliases\tsuspended\tcreated_at\n',
  );
});

test('times are dates, also those of prices', async () => {
  const fetch = answering({ data: [{ id: '1', model: 'm', valid_from: 0 }] });
  const { stdout } = await runCli(['prices', 'list'], { environment, fetch });
  expect(stdout).toBe('1\tm\t\t\t\t\t\t1970-01-01T00:00:00Z\n');
});

test('an empty list in a pipe prints nothing on stdout', async () => {
  const fetch = answering({ data: [] });
  expect(await runCli(['tenants', 'list'], { environment, fetch })).toMatchObject({ code: 0, stdout: '' });
  const shown = await runCli(['tenants', 'list'], { environment, fetch, terminal: { hasColors: false } });
  expect(shown.stdout).toBe('No entries.\n');
});

test('an object in a pipe has one line per field', async () => {
  const fetch = answering({ id: 'a', object: 'tenant', name: 'A', plan: null });
  const { stdout } = await runCli(['tenants', 'show', 'a'], { environment, fetch });
  expect(stdout).toBe('id\ta\nname\tA\nplan\t\n');
});

test.each([
  ['keys', 'create', '--tenant', 'a', '--name', 'n'],
  ['keys', 'rotate', 'k1'],
])('in a pipe, %s %s prints the new key on stdout and the rest on stderr', async (...words) => {
  const fetch = answering({ id: 'k1', key: 'sk-1', tenant: 'a' });
  expect(await runCli(words, { environment, fetch })).toEqual({
    code: 0,
    stdout: 'sk-1\n',
    stderr: 'id\tk1\ntenant\ta\n',
  });
  const shown = await runCli(words, { environment, fetch, terminal: { hasColors: false } });
  expect(shown.stdout).toMatch(/│ key +│ sk-1/);
  const json = await runCli([...words, '--json'], { environment, fetch });
  expect(JSON.parse(json.stdout)).toMatchObject({ key: 'sk-1', tenant: 'a' });
});

test('--version prints the version', async () => {
  expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
});

test.each(['server', 'ftp://server', 'http//server', 'http://'])(
  'the address %s is a usage error',
  async (url) => {
    const { code, stdout, stderr } = await runCli(['--url', url, 'models']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(`continuo: '${url}' is not an address such as https://api.example.com.\n`);
  },
);
