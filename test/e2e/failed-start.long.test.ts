import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { statOf, untilEnded } from '../support/child-processes.ts';
import { hasChroot } from '../support/chroot.ts';
import { newDirectory } from '../support/new-directory.ts';
import { exitOf, freePort, launch, START } from '../support/system.ts';

async function launchOnFreePorts(environment: Readonly<Record<string, string>>) {
  const ports = {
    CONTINUO_PORT: String(await freePort()),
    CONTINUO_ORIGIN_PORT: String(await freePort()),
  };
  return launch({ ...ports, CONTINUO_STATE_DIR: newDirectory(), ...environment });
}

/** In each case, the launcher must not wait for a Worker that will never be ready. */
describe('npm start', () => {
  test('reports why an origin cannot start, and exits', async () => {
    const { child, output } = await launchOnFreePorts({ CONTINUO_SLOTS: 'eight' });
    expect(await exitOf(child)).toBe(1);
    expect(output()).toMatch(/^continuo: The origin stopped:\n.*CONTINUO_SLOTS: /);
  });

  test('reports once why no model can be loaded', async () => {
    const { child, output } = await launchOnFreePorts({ CONTINUO_CONTEXT: '1000000' });
    expect(await exitOf(child)).toBe(1);
    expect(output()).toMatch(
      /^continuo: The origin stopped:\ncontinuo origin: [^\n]*context of 1000000[^\n]*\n$/,
    );
  });

  test('refuses a misspelled variable before it starts anything', async () => {
    const { child, output } = launch({ CONTINUO_PROT: '80' });
    expect(await exitOf(child)).toBe(1);
    expect(output().trim()).toBe(
      'continuo: CONTINUO_PROT: there is no such variable; the nearest name is CONTINUO_PORT',
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
    const shell = spawn('sh', ['-c', '"$0" "$@"; exit $?', process.execPath, ...START], {
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

  test('does not report a foreign address as a port in use', async () => {
    const { child, output } = await launchOnFreePorts({ CONTINUO_HOST: '192.0.2.1' });
    expect(await exitOf(child)).toBe(1);
    expect(output().trim()).toMatch(
      /^continuo: Cannot listen on port \d+ of 192\.0\.2\.1 \(EADDRNOTAVAIL\)\.$/,
    );
  });

  /** Starts on a disk of its own, full from then on if small. Returns what it printed so far. */
  async function startOnDisk(directory: string, size: string) {
    const mounted = `mount -t tmpfs -o size=${size},mode=700 tmpfs ${directory} && exec "$0" "$@"`;
    const child = spawn('unshare', ['--mount', 'sh', '-c', mounted, process.execPath, ...START], {
      env: {
        ...process.env,
        CONTINUO_PORT: String(await freePort()),
        CONTINUO_ORIGIN_PORT: String(await freePort()),
        CONTINUO_STATE_DIR: directory,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
    return { child, output: () => printed };
  }

  test.runIf(hasChroot)('says that the disk is full', async () => {
    const { child, output } = await startOnDisk(newDirectory(), '200k');
    expect(await exitOf(child)).toBe(1);
    expect(output()).toMatch(/^continuo: The worker stopped:\n[^\n]*database or disk is full/);
  });

  test.runIf(hasChroot)(
    'a disk that fills ends nothing, and requests work when it has room again',
    async () => {
      const directory = newDirectory();
      const { child, output } = await startOnDisk(directory, '24m');
      onTestFinished(() => void child.kill('SIGINT'));
      await expect.poll(output).toContain('Ctrl-C stops everything.');
      const [, url, key] = /endpoint {2}(\S+)\n.*key {7}(\S+)/s.exec(output())!;
      const complete = () =>
        fetch(`${url}/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'default', prompt: 'Once', max_tokens: 2 }),
        }).then(({ status }) => status);
      expect(await complete()).toBe(200);
      const disk = `/proc/${child.pid}/root${directory}`;
      expect(() => writeFileSync(path.join(disk, 'filler'), Buffer.alloc(2 ** 25))).toThrow('ENOSPC');
      for (let count = 0; count < 60; count++) await complete();
      expect(child.exitCode).toBe(null);
      rmSync(path.join(disk, 'filler'));
      await expect.poll(complete).toBe(200);
      child.kill('SIGINT');
      expect(await exitOf(child)).toBe(0);
    },
  );
});
