import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { statOf, untilEnded } from '../support/child-processes.ts';
import { hasChroot } from '../support/chroot.ts';
import { exitOf, freePort, launch, startSystem } from '../support/system.ts';

const LAUNCHER = path.resolve(import.meta.dirname, '../../origin/cli/start/main.ts');

const newDirectory = (): string => mkdtempSync(path.join(tmpdir(), 'continuo-failed-start-'));

async function launchOnFreePorts(environment: Readonly<Record<string, string>>) {
  const ports = {
    CONTINUO_PORT: String(await freePort()),
    CONTINUO_ORIGIN_PORT: String(await freePort()),
  };
  return launch({ ...ports, CONTINUO_STATE_DIR: newDirectory(), ...environment });
}

/** In each case, the launcher must not wait for a Worker that will never be ready. The test's timeout is far shorter. */
describe('npm start', () => {
  test('reports why an origin cannot start, and exits', async () => {
    const { child, output } = await launchOnFreePorts({ CONTINUO_SLOTS: 'eight' });
    expect(await exitOf(child)).toBe(1);
    expect(output()).toMatch(/^The origin stopped:\n.*CONTINUO_SLOTS: /);
  });

  test('reports once why no model can be loaded', async () => {
    const { child, output } = await launchOnFreePorts({ CONTINUO_CONTEXT: '1000000' });
    expect(await exitOf(child)).toBe(1);
    expect(output()).toMatch(/^The origin stopped:\ncontinuo origin: [^\n]*context of 1000000[^\n]*\n$/);
  });

  test('refuses a misspelled variable before it starts anything', async () => {
    const { child, output } = launch({ CONTINUO_PROT: '80' });
    expect(await exitOf(child)).toBe(1);
    expect(output().trim()).toBe(
      'CONTINUO_PROT: there is no such variable; the nearest name is CONTINUO_PORT',
    );
  });

  test('Ctrl-C before anything is ready ends the launcher', async () => {
    const directory = newDirectory();
    const { child } = await launchOnFreePorts({ CONTINUO_STATE_DIR: directory });
    // The launcher handles signals before it starts anything.
    const log = path.join(directory, 'origin.log');
    await expect.poll(() => existsSync(log) && statSync(log).size > 0).toBe(true);
    child.kill('SIGINT');
    expect(await exitOf(child)).toBe(0);
  });

  test.each([
    ['ends with the shell in which npm runs it', 'start'],
    ['outlives a shell that is not of npm', ''],
  ])('%s', async (_, event) => {
    const directory = newDirectory();
    const shell = spawn('sh', ['-c', '"$0" "$1"; exit $?', process.execPath, LAUNCHER], {
      env: {
        ...process.env,
        CONTINUO_PORT: String(await freePort()),
        CONTINUO_ORIGIN_PORT: String(await freePort()),
        CONTINUO_STATE_DIR: directory,
        npm_lifecycle_event: event || undefined,
      },
      stdio: 'ignore',
    });
    const log = path.join(directory, 'origin.log');
    await expect.poll(() => existsSync(log) && statSync(log).size > 0).toBe(true);
    const launcher = Number(readFileSync(path.join(directory, 'launcher.pid'), 'utf8'));
    expect(launcher).not.toBe(shell.pid);
    shell.kill('SIGTERM');
    await exitOf(shell);
    if (event === '') {
      await sleep(2000);
      expect(statOf(launcher)).not.toBeNull();
      process.kill(launcher, 'SIGTERM');
    }
    await untilEnded(launcher);
  });

  test('one port for Worker and origin is refused', async () => {
    const port = String(await freePort());
    const { child, output } = launch({ CONTINUO_PORT: port, CONTINUO_ORIGIN_PORT: port });
    expect(await exitOf(child)).toBe(1);
    expect(output().trim()).toBe(`CONTINUO_ORIGIN_PORT: ${port} is already CONTINUO_PORT; set another one.`);
  });

  test('does not report a foreign address as a port in use', async () => {
    const { child, output } = await launchOnFreePorts({ CONTINUO_HOST: '192.0.2.1' });
    expect(await exitOf(child)).toBe(1);
    expect(output().trim()).toMatch(/^Cannot listen on port \d+ of 192\.0\.2\.1 \(EADDRNOTAVAIL\)\.$/);
  });

  test.runIf(hasChroot)('says what an empty log means on a full disk', async () => {
    const directory = newDirectory();
    const full = `mount -t tmpfs -o size=200k,mode=700 tmpfs ${directory} && exec "$0" "$1"`;
    const child = spawn('unshare', ['--mount', 'sh', '-c', full, process.execPath, LAUNCHER], {
      env: {
        ...process.env,
        CONTINUO_PORT: String(await freePort()),
        CONTINUO_ORIGIN_PORT: String(await freePort()),
        CONTINUO_STATE_DIR: directory,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const output = text(child.stderr);
    expect(await exitOf(child)).toBe(1);
    expect(await output).toBe(
      `The worker stopped:\n${directory}/worker.log is empty, as if the disk were full.\n`,
    );
  });

  test('replaces an incomplete state file', async () => {
    const directory = newDirectory();
    writeFileSync(path.join(directory, 'development.json'), '{"apiKey": "sk-');
    const system = await startSystem({}, directory);
    expect(await system.stop()).toBe(0);
  });
});
