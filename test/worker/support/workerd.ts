import path from 'node:path';
import { build } from 'esbuild';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import type { Database } from './database.ts';
import { WorkerdLog } from './workerd-log.ts';

/** Runs parts of the Worker in a real workerd with a real D1, without HTTP. */

const ROOT = path.resolve(import.meta.dirname, '../../..');

async function bundle(source: string): Promise<string> {
  const result = await build({
    stdin: { contents: source, resolveDir: path.join(ROOT, 'worker'), loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2024',
    external: ['cloudflare:*'],
  });
  return result.outputFiles[0]!.text;
}

/** Starts `source`, a module inside worker/, with the Durable Objects that it exports. */
export async function startWorkerd(
  source: string,
  objects: Readonly<Record<string, string>> = {},
  persist?: string,
  bindings: Readonly<Record<string, string>> = {},
  log = new WorkerdLog(),
): Promise<{ workerd: Miniflare; db: Database }> {
  const durableObjects = Object.fromEntries(
    Object.entries(objects).map(([binding, className]) => [binding, { className, useSQLite: true }]),
  );
  const workerd = new Miniflare({
    ...convertV4MiniflareOptions({
      modules: true,
      script: await bundle(source),
      compatibilityDate: '2026-10-20',
      durableObjects,
      bindings: { ...bindings },
      // One database for both, as a deployment may have it.
      d1Databases: { DB: 'db', USAGE_DB: 'db' },
      cf: false,
    }),
    ...(persist === undefined ? {} : { resourcePersistencePath: persist }),
    handleStructuredLogs: log.handler,
  });
  const db = (await workerd.getD1Database('DB')) as unknown as Database;
  return { workerd, db };
}
