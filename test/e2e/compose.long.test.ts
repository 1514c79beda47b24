import { execFileSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/system.ts';

const FILE = 'origin/deploy/compose.yaml';

// Builds both images, which takes minutes and the network, and needs a container runtime.
test.runIf(process.env.TEST_COMPOSE)(
  'the composed system answers a tenant, over a restart, and writes nothing but its volumes',
  async () => {
    const port = String(await freePort());
    const compose = (...args: string[]): string =>
      execFileSync('docker', ['compose', '-p', `continuo-${port}`, '-f', FILE, ...args], {
        env: { ...process.env, CONTINUO_PORT: port },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
        maxBuffer: 1e9,
      });
    onTestFinished(() => void compose('down', '--volumes'));
    compose('up', '--build', '--detach', '--wait');
    const admin = (...args: string[]) =>
      compose(
        'exec',
        '-T',
        'edge',
        'node',
        'origin/cli/continuo.js',
        '--key-file',
        '/secrets/admin-key',
        ...args,
      );
    admin('tenants', 'create', '--id', 'acme', '--name', 'Acme');
    const key = admin('keys', 'create', '--tenant', 'acme', '--name', 'first').trim();
    const complete = () =>
      fetch(`http://127.0.0.1:${port}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'default', prompt: 'Once', max_tokens: 2 }),
      }).catch(() => null);
    expect((await complete())?.status).toBe(200);
    compose('restart');
    await expect.poll(async () => (await complete())?.status).toBe(200);
    for (const service of ['edge', 'origin'])
      expect(() => compose('exec', '-T', service, 'touch', '/continuo/file')).toThrow();
  },
);
