import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { V4WorkerOptions } from 'miniflare';
import { unstable_getMiniflareWorkerOptions } from 'wrangler';
import * as z from 'zod';
import { bundleWorker } from './bundle-worker.ts';
import { BUNDLED_WORKER, ROOT } from './installation.ts';
import { localIds, migrateLocalDatabases } from './local-databases.ts';

/** Process entry: migrates the local Worker's databases and prints the rest as JSON on its last line. */

export interface PreparedWorker {
  /** What wrangler.toml says of the Worker. */
  readonly configured: Omit<V4WorkerOptions, 'assets'>;
  readonly assets: NonNullable<V4WorkerOptions['assets']>;
  /** One module; empty if it was not asked for. */
  readonly script: string;
}

const CONFIGURATION = path.join(ROOT, 'wrangler.toml');

/** `state` = the directory of databases to migrate, if any; `bundles` = whether the script is asked for. */
const task = z.object({ state: z.string().optional(), bundles: z.boolean() });
export type PreparationTask = z.infer<typeof task>;

async function prepare({ state, bundles }: PreparationTask): Promise<PreparedWorker> {
  const {
    modulesRules: _,
    assets,
    ...configured
  } = unstable_getMiniflareWorkerOptions(CONFIGURATION).workerOptions;
  const [script] = await Promise.all([
    !bundles ? '' : existsSync(BUNDLED_WORKER) ? readFileSync(BUNDLED_WORKER, 'utf8') : bundleWorker(),
    state === undefined ? null : migrateLocalDatabases(CONFIGURATION, state),
  ]);
  return {
    configured: { ...configured, d1Databases: localIds(Object.keys(configured.d1Databases ?? {})) },
    assets: assets as PreparedWorker['assets'],
    script,
  };
}

try {
  const prepared = await prepare(task.parse(JSON.parse(process.argv[2]!)));
  process.stdout.write(`\n${JSON.stringify(prepared)}`);
} catch (error) {
  console.error(errorMessage(error));
  // The simulator may still run.
  process.exit(1);
}
