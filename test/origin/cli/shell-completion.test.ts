import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runCli } from './run-cli.ts';

const MAIN = path.resolve(import.meta.dirname, '../../../origin/cli/main.ts');

const candidates = async (...words: string[]): Promise<string[]> => {
  const { stdout } = await runCli(['candidates', '--', ...words]);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t')[0]!);
};

test('offers commands, subcommands, options and choices', async () => {
  expect(await candidates('')).toEqual(
    expect.arrayContaining(['complete', 'models', 'keys', 'model', 'doctor']),
  );
  expect(await candidates('')).not.toContain('candidates');
  expect(await candidates('mod')).toEqual(['models', 'model']);
  expect(await candidates('keys', '')).toEqual(['list', 'show', 'create', 'rotate', 'revoke', 'help']);
  expect(await candidates('keys', 'create', '--')).toEqual(
    expect.arrayContaining(['--tenant', '--name', '--json', '--url', '--help']),
  );
  expect(await candidates('complete', 'some text', '--temp')).toEqual(['--temperature']);
  expect(await candidates('completion', '')).toEqual(['bash', 'zsh', 'fish']);
  expect(await candidates('--url', 'keys', 'us')).toEqual(['usage']);
});

test('offers nothing for the value of an option, so that the shell offers files', async () => {
  expect(await candidates('complete', '--schema', '')).toEqual([]);
  expect(await candidates('complete', '-t', '')).toEqual([]);
});

test('explains each candidate', async () => {
  const { stdout } = await runCli(['candidates', '--', 'doc']);
  expect(stdout).toMatch(/^doctor\tfind what keeps .*\n$/);
});

test('rejects an unknown shell', async () => {
  const { code, stderr } = await runCli(['completion', 'tcsh']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('Allowed choices are bash, zsh, fish')]);
});

/** Makes a folder with a `continuo` that completes, and otherwise prints its arguments. */
function folderWithContinuo(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'continuo-shell-'));
  const file = path.join(folder, 'continuo');
  const run = `exec "${process.execPath}" "${MAIN}" "$@"`;
  writeFileSync(
    file,
    `#!/bin/sh\ncase "$1" in completion|candidates) ${run};; esac\nprintf '<%s>' RAN "$@"; echo\n`,
  );
  chmodSync(file, 0o755);
  return folder;
}

/** Starts an interactive bash on a pseudo-terminal, with the completion script. */
async function startBash(folder: string) {
  const child = spawn('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], {
    cwd: folder,
    env: { PATH: `${folder}:${process.env.PATH}`, PS1: 'ready> ', TERM: 'dumb', INPUTRC: '/dev/null' },
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  onTestFinished(() => void child.kill());
  /** Types keys and waits until the terminal shows a text after them. */
  const type = async (keys: string, until: string): Promise<void> => {
    shown = '';
    child.stdin.write(keys);
    await expect.poll(() => shown).toContain(until);
  };
  await type('', 'ready> ');
  await type('source <(continuo completion bash)\n', '\nready> ');
  return { type };
}

const hasPseudoTerminal = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasPseudoTerminal)('completes in an interactive bash', async () => {
  const folder = folderWithContinuo();
  writeFileSync(path.join(folder, 'user.schema.json'), '{}');
  const { type } = await startBash(folder);
  await type('continuo key\tcre\t--ten\tacme\n', '<RAN><keys><create><--tenant><acme>');
  await type('continuo complete Hi --schema us\t\n', '<RAN><complete><Hi><--schema><user.schema.json>');
});

test.skipIf(!hasPseudoTerminal)('never runs what is being typed', async () => {
  const folder = folderWithContinuo();
  const { type } = await startBash(folder);
  await type('continuo complete "$(touch ran)" --temp\t', '--temperature');
  expect(existsSync(path.join(folder, 'ran'))).toBe(false);
});

const isInstalled = (shell: string) => spawnSync(shell, ['--version']).status === 0;

test.skipIf(!isInstalled('zsh'))('the zsh script is valid', () => {
  const script =
    'autoload -U compinit; compinit -u -D; source <(continuo completion zsh); print $_comps[continuo]';
  const env = { PATH: `${folderWithContinuo()}:${process.env.PATH}` };
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', script], { env, encoding: 'utf8' });
  expect([stdout, stderr]).toEqual(['_continuo\n', '']);
});

test.skipIf(!isInstalled('fish'))('completes in fish', () => {
  const script = "continuo completion fish | source; complete --do-complete 'continuo keys cre'";
  const env = {
    PATH: `${folderWithContinuo()}:${process.env.PATH}`,
    HOME: mkdtempSync(path.join(tmpdir(), 'fish-')),
  };
  const { stdout } = spawnSync('fish', ['--no-config', '-c', script], { env, encoding: 'utf8' });
  expect(stdout).toMatch(/^create\tcreate a key/);
});
