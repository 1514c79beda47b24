import path from 'node:path';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { V4WorkerOptions } from 'miniflare';
import { unstable_getMiniflareWorkerOptions, unstable_readConfig } from 'wrangler';
import * as z from 'zod';
import { bundleWorker } from './bundle-worker.ts';
import { ROOT } from './installation.ts';

/** Process entry: reads wrangler.toml, bundles the Worker, and prints both as JSON on its last line. */

/** What is equal at each start of the local Worker. Paths are relative to the root. */
export interface PreparedWorker {
  /** What wrangler.toml says of the Worker. */
  readonly configured: Omit<V4WorkerOptions, 'assets' | 'd1Databases' | 'modulesRules' | 'rootPath'>;
  readonly assets: NonNullable<V4WorkerOptions['assets']>;
  readonly databases: readonly { readonly binding: string; readonly folder: string }[];
  /** One module. */
  readonly script: string;
}

interface ConfiguredDatabase {
  readonly binding: string;
  readonly migrations_dir?: string;
}

const CONFIGURATION = path.join(ROOT, 'wrangler.toml');

const task = z.object({ minifies: z.boolean() });
export type PreparationTask = z.infer<typeof task>;

async function prepare({ minifies }: PreparationTask): Promise<PreparedWorker> {
  const { workerOptions } = unstable_getMiniflareWorkerOptions(CONFIGURATION);
  const { modulesRules: _, rootPath: __, d1Databases: ___, assets, ...configured } = workerOptions;
  const { directory, ...served } = assets as PreparedWorker['assets'];
  const databases: readonly ConfiguredDatabase[] = unstable_readConfig({
    config: CONFIGURATION,
  }).d1_databases;
  return {
    configured,
    assets: { ...served, directory: path.relative(ROOT, directory) },
    databases: databases.map(({ binding, migrations_dir: folder = '' }) => ({ binding, folder })),
    script: await bundleWorker(minifies),
  };
}

try {
  const prepared = await prepare(task.parse(JSON.parse(process.argv[2]!)));
  process.stdout.write(`\n${JSON.stringify(prepared)}`);
} catch (error) {
  console.error(errorMessage(error));
  process.exitCode = 1;
}
