import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { newDirectory } from '../../support/new-directory.ts';
import { runCli } from './run-cli.ts';

const STATE = path.join(newDirectory(), 'state');
const VALID = ['--origin', 'http://127.0.0.1:1', '--state', STATE, '--secrets', STATE];

afterEach(() => expect(existsSync(STATE)).toBe(false));

test.each([
  [
    'an address that is not plain HTTP',
    '--origin',
    'https://x.example',
    "'https://x.example' is no http address.",
  ],
  ['a port that is no number', '--port', 'first', 'Expected a whole number of at least 1 and at most 65535.'],
  [
    'a port that does not exist',
    '--port',
    '70000',
    'Expected a whole number of at least 1 and at most 65535.',
  ],
])('%s is refused before anything starts', async (_, option, value, message) => {
  const { code, stderr } = await runCli(['edge', ...VALID, option, value]);
  expect(code).toBe(2);
  expect(stderr.split('\n')[0]).toMatch(/^continuo: /);
  expect(stderr.split('\n')[0]).toContain(message);
});

test.each([
  ['CONTINUO_PORT', 'first', /^continuo: CONTINUO_PORT: received "first"; /],
  ['CONTINUO_PROT', '80', /^continuo: CONTINUO_PROT: there is no such variable/],
])('a wrong variable is refused by name: %s', async (name, value, message) => {
  const { code, stderr } = await runCli(['edge', ...VALID], { environment: { [name]: value } });
  expect(code).toBe(1);
  expect(stderr).toMatch(message);
});

test('all missing options are named together', async () => {
  const { code, stderr } = await runCli(['edge']);
  expect(code).toBe(2);
  for (const option of ['--origin', '--state', '--secrets']) expect(stderr).toContain(option);
});
