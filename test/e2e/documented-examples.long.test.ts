import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { codeFor, examplesIn } from '../docs/pages.ts';
import { forAllTests } from '../support/for-tests.ts';
import { TEST_LIMIT_MS } from '../support/run/time-limits.ts';
import { startSystem } from '../support/system.ts';

/** Examples of the documentation against one running system: shell, TypeScript, JSON bodies. */

const ROOT = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
const system = forAllTests(startSystem);

/** @returns standard output  @throws if the example exits with another code than 0 */
async function runExample(command: string, args: readonly string[]): Promise<string> {
  const env = {
    ...process.env,
    KEY: system.apiKey,
    CONTINUO_URL: system.url,
    CONTINUO_STATE_DIR: system.stateDirectory,
  };
  return (await run(command, args, { cwd: ROOT, env, timeout: TEST_LIMIT_MS - 5_000 })).stdout;
}

/**
 * An error status of curl fails the example, as does any failing command of a pipe. `npx` starts the command
 * without npm, which takes 0.5 s of processor time less.
 */
const PRELUDE = `set -euo pipefail
curl() { command curl --fail-with-body --silent --show-error "$@"; }
npx() { local name="$1"; shift; "node_modules/.bin/$name" "$@"; }
`;
const runShell = (code: string) => runExample('bash', ['-c', PRELUDE + codeFor({ code }, system.url)]);

/** The file lies in the repository, so that imports of installed packages work. */
async function runTypeScript(code: string): Promise<string> {
  const file = path.join(ROOT, `.example-${process.pid}.ts`);
  writeFileSync(file, codeFor({ code }, system.url));
  try {
    return await runExample(process.execPath, [file]);
  } finally {
    rmSync(file);
  }
}

for (const { id, file, code } of examplesIn('sh'))
  test(`${id} in ${file} runs`, async () => {
    await runShell(code);
  });

for (const { id, file, code } of examplesIn('ts'))
  test(`${id} in ${file} runs`, async () => {
    await runTypeScript(code);
  });

for (const { id, file, code } of examplesIn('json'))
  test(`${id} in ${file} is a request that succeeds`, async () => {
    const answer = await system.request('/v1/completions', code);
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
  });
