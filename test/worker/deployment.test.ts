import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { unstable_readConfig } from 'wrangler';
import { bundleWorker } from '../../origin/cli/start/bundle-worker.ts';
import { newDirectory } from '../support/new-directory.ts';
import { completion } from './admin/admin-client.ts';
import { startFakeOrigin } from './support/fake-origin.ts';
import { KEY, startWorker } from './support/worker.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

describe('deployment', () => {
  test('keeps the compressed bundle below 200 KB', async () => {
    expect(gzipSync(await bundleWorker(true)).byteLength).toBeLessThan(200 * 1024);
  });

  test('deploys to production with every binding (dry run)', () => {
    const directory = newDirectory();
    const wrangler = path.join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
    const printed = execFileSync(
      process.execPath,
      [wrangler, 'deploy', '--dry-run', '--env', 'production', '--outdir', directory],
      {
        cwd: ROOT,
        encoding: 'utf8',
        env: {
          ...process.env,
          CI: 'true',
          CLOUDFLARE_CF_FETCH_ENABLED: 'false',
          WRANGLER_SEND_METRICS: 'false',
        },
      },
    );
    for (const binding of [
      'LIMITER',
      'STREAMS',
      'ANSWERS',
      'BATCHES',
      'FILES',
      'DB',
      'USAGE_DB',
      'USAGE',
      'REQUESTS',
      'FLOOD_BY_ADDRESS',
      'FLOOD_BY_KEY',
      'ASSETS',
      'ENVIRONMENT',
    ]) {
      expect(printed).toContain(`env.${binding}`);
    }
  });

  test('keeps the Worker’s log lines in all environments, and the platform’s invocation logs in none', () => {
    for (const env of [undefined, 'staging', 'production']) {
      const { observability } = unstable_readConfig({ config: path.join(ROOT, 'wrangler.toml'), env });
      expect(observability?.logs).toMatchObject({ enabled: true, invocation_logs: false });
    }
  });

  test('keeps the usage ledger apart from the keys, and rolls it up every day, in all environments', () => {
    for (const env of [undefined, 'staging', 'production']) {
      const { d1_databases, triggers } = unstable_readConfig({
        config: path.join(ROOT, 'wrangler.toml'),
        env,
      });
      expect(
        new Set(d1_databases.map((one: { readonly database_name?: string }) => one.database_name)).size,
      ).toBe(2);
      expect(triggers.crons).toHaveLength(1);
    }
  });

  test('rejects the development key in production', async () => {
    const origin = await startFakeOrigin();
    const worker = await startWorker(origin, { ENVIRONMENT: 'production' });
    try {
      expect((await completion(worker, KEY)).status).toBe(401);
      expect((await worker.request('/admin/v1/plans')).status).toBe(401);
    } finally {
      await worker.stop();
      await origin.stop();
    }
  });
});
