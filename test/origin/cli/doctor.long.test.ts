import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Finding } from '../../../origin/cli/doctor/finding.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { freePort } from '../../support/system.ts';
import { KEY } from '../../worker/support/worker.ts';
import { workerForTests } from '../../worker/support/worker-for-tests.ts';
import { type CliRun, runCli } from './run-cli.ts';

const { worker } = workerForTests();

/** Another program may use the default ports. */
const PORTS = {
  CONTINUO_PORT: String(await freePort()),
  CONTINUO_ORIGIN_PORT: String(await freePort()),
};

const environment = () => ({ ...PORTS, CONTINUO_URL: worker.url, CONTINUO_API_KEY: KEY });

async function findingsOf(words: readonly string[], run: CliRun) {
  const { code, stdout } = await runCli(['doctor', '--json', ...words], run);
  return { code, findings: JSON.parse(stdout) as Finding[] };
}

const WRANGLER = readFileSync(path.resolve(import.meta.dirname, '../../../wrangler.toml'), 'utf8');

/** Writes a changed copy of the Worker's configuration. Returns its path. */
function configured(change: (text: string) => string): string {
  const file = path.join(newDirectory(), 'wrangler.toml');
  writeFileSync(file, change(WRANGLER));
  return file;
}

test('on a sound machine nothing fails, and the template’s placeholders are warnings', async () => {
  const { code, findings } = await findingsOf([], { environment: environment() });
  expect(findings.filter(({ status }) => status === 'fail')).toEqual([]);
  expect(code).toBe(0);
  expect(findings.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['Node', 'Variables', 'State directory', 'Provider', 'CUDA', 'Clock']),
  );
  expect(findings).toContainEqual({ status: 'ok', name: 'Server', text: new URL(worker.url).origin });
  expect(findings).toContainEqual(
    expect.objectContaining({
      status: 'ok',
      name: 'Key and models',
      text: expect.stringContaining('(loaded)'),
    }),
  );
  expect(findings).toContainEqual(
    expect.objectContaining({
      status: 'warn',
      name: 'Worker (production)',
      text: expect.stringMatching(/^still has the placeholders of .*origin\.example\.com$/),
    }),
  );
});

test('prints one line per finding with its advice, and ends with exit code 1 if one fails', async () => {
  const failing = { ...environment(), CONTINUO_API_KEY: 'wrong', CONTINUO_MODEL_DIR: '/no/model' };
  const { code, stdout, stderr } = await runCli(['doctor'], { environment: failing });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^fail {2}Model model: .*\n {6}Correct it/m);
  expect(stdout).toMatch(/^fail {2}Key and models: .*\n {6}Set CONTINUO_API_KEY/m);
  expect(stdout).not.toContain('\u001b');
  expect(stderr).toMatch(/^continuo: 2 of \d+ checks failed\.\n$/);
});

test.each([
  [
    'a variable with a wrong value',
    (text: string) => text.replace('[vars]', '[vars]\nKEEP_ALIVE_MS = "soon"'),
    'Worker (top level)',
    /KEEP_ALIVE_MS is invalid/,
  ],
  [
    'an upstream without its binding',
    (text: string) =>
      text.replace('[env.production.vars]', '[env.production.vars]\nORIGIN_BINDING = "TUNNEL"'),
    'Worker (production)',
    /lacks the bindings TUNNEL/,
  ],
  [
    'an environment without its database',
    (text: string) => text.replace(/\[\[env\.staging\.d1_databases\]\][^[]*/, ''),
    'Worker (staging)',
    /lacks the bindings DB/,
  ],
  ['a file that is not TOML', () => '[vars', 'Worker (top level)', /./],
])('finds %s in the Worker’s configuration', async (_, change, name, text) => {
  const run = { environment: environment() };
  const { code, findings } = await findingsOf(['--config', configured(change)], run);
  const [finding] = findings.filter((one) => one.name === name);
  expect([code, finding?.status, finding?.advice]).toEqual([1, 'fail', expect.any(String)]);
  expect(finding?.text).toMatch(text);
});

test('a deployment without placeholders lists the secrets that it needs', async () => {
  const config = configured((text) => text.replaceAll('example.com', 'example.net'));
  const { findings } = await findingsOf(['--config', config], { environment: environment() });
  expect(findings).toContainEqual({
    status: 'ok',
    name: 'Worker (production)',
    text: '1 upstream(s); secrets: ORIGIN_SECRET, KEY_ID_SECRET, ADMIN_KEY_SHA256',
  });
});

test('a missing configuration file and a server that does not answer fail', async () => {
  const run = { environment: { ...PORTS, CONTINUO_URL: 'http://127.0.0.1:1' } };
  const { code, findings } = await findingsOf(['--config', '/no/wrangler.toml'], run);
  expect(code).toBe(1);
  const failed = findings.filter(({ status }) => status === 'fail').map(({ name }) => name);
  expect(failed).toEqual(['Worker', 'Server']);
});

test('a port that is used twice fails', async () => {
  const run = { environment: { ...environment(), CONTINUO_PORT: PORTS.CONTINUO_ORIGIN_PORT } };
  const { findings } = await findingsOf([], run);
  expect(findings).toContainEqual(
    expect.objectContaining({
      status: 'fail',
      text: expect.stringContaining('is already CONTINUO_PORT'),
    }),
  );
});
