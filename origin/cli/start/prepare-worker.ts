import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { V4WorkerOptions } from 'miniflare';
import { unstable_getMiniflareWorkerOptions } from 'wrangler';
import * as z from 'zod';
import { bundleWorker } from './bundle-worker.ts';
import { BUNDLED_WORKER, ROOT } from './installation.ts';
import { localIds, migrateLocalDatabases } from './local-databases.ts';

/** Entry of a process that prepares the local Worker: migrates its databases, and prints the rest as JSON on its last line. */

export interface PreparedWorker {
  /** What wrangler.toml says of the Worker. */
  readonly configured: Omit<V4WorkerOptions, 'assets'>;
  readonly assets: NonNullable<V4WorkerOptions['assets']>;
  /** One module; empty if it was not asked for. */
  readonly script: string;
}

const CONFIGURATION = path.join(ROOT, 'wrangler.toml');

const task = z.object({ state: z.string().optional(), bundles: z.boolean() });

const { state, bundles } = task.parse(JSON.parse(process.argv[2]!));
const {
  modulesRules: _,
  assets,
  ...configured
} = unstable_getMiniflareWorkerOptions(CONFIGURATION).workerOptions;
const [script] = await Promise.all([
  !bundles ? '' : existsSync(BUNDLED_WORKER) ? readFileSync(BUNDLED_WORKER, 'utf8') : bundleWorker(),
  state === undefined ? null : migrateLocalDatabases(CONFIGURATION, state),
]);
const prepared: PreparedWorker = {
  configured: { ...configured, d1Databases: localIds(Object.keys(configured.d1Databases ?? {})) },
  assets: assets as PreparedWorker['assets'],
  script,
};
process.stdout.write(`\n${JSON.stringify(prepared)}`);
