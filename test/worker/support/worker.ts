import { existsSync, readdirSync } from 'node:fs';
import type { Miniflare } from 'miniflare';
import { bundleWorker } from '../../../origin/cli/start/bundle-worker.ts';
import { type LocalWorkerOptions, openLocalWorker } from '../../../origin/cli/start/local-worker.ts';
import { sha256Hex } from '../../../shared/signing.ts';
import { type Database, migrate } from './database.ts';
import type { FakeOrigin } from './fake-origin.ts';
import { WorkerdLog } from './workerd-log.ts';

/** A client of the Worker. */
export interface WorkerClient {
  readonly url: string;
  /** Sends a request with the development key. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** Sends a completion as JSON, or a text as it is, with the development key. */
  post(body: unknown, init?: RequestInit): Promise<Response>;
  /** Sends a POST of JSON with the development key, unless the headers have another one. */
  postTo(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

/** The Worker in a real workerd, reached over HTTP. */
export interface RunningWorker extends WorkerClient {
  /** Its D1 database, migrated. */
  readonly database: Database;
  /** The D1 database of the usage ledger, migrated. */
  readonly usageDatabase: Database;
  /** Its R2 bucket. */
  readonly files: { put(key: string, content: string): Promise<unknown> };
  /** Runs the work that the platform runs once a day. */
  runScheduled(): Promise<void>;
  stop(): Promise<void>;
}

export const KEY = 'test-key';

/**
 * `state` = a directory that a later Worker continues from. There are no `ratelimits` by default: they would
 * reject tests.
 */
export interface WorkerOptions extends Pick<LocalWorkerOptions, 'ratelimits' | 'state'> {
  readonly log?: WorkerdLog;
  /** Module to run instead of the Worker's entry. */
  readonly entry?: string;
}

const bundles = new Map<string, Promise<string>>();

/** Bundles each entry once. */
function bundleOf(entry: string): Promise<string> {
  const bundle = bundles.get(entry) ?? bundleWorker(false, entry);
  bundles.set(entry, bundle);
  return bundle;
}

export function clientOf(url: string): WorkerClient {
  const request = (to: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${KEY}`);
    return fetch(url + to, { ...init, headers });
  };
  return {
    url,
    request,
    post(body, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return request('/v1/completions', { method: 'POST', body: text, ...init, headers });
    },
    postTo: (path, body, headers = {}) =>
      request(path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
  };
}

async function runScheduled(miniflare: Miniflare): Promise<void> {
  const worker = await miniflare.getWorker();
  await worker.scheduled({ cron: '17 3 * * *' });
}

/** @param vars variables in addition to those of wrangler.toml */
export async function startWorker(
  origin: Pick<FakeOrigin, 'url' | 'secret'>,
  vars: Readonly<Record<string, string>> = {},
  { log = new WorkerdLog(), entry, ...options }: WorkerOptions = {},
): Promise<RunningWorker> {
  const { state } = options;
  const used = state !== undefined && existsSync(state) && readdirSync(state).length > 0;
  const { url, miniflare } = await openLocalWorker({
    host: '127.0.0.1',
    port: 0,
    origins: [{ name: 'origin', url: origin.url }],
    vars: {
      ENVIRONMENT: 'development',
      ORIGIN_SECRET: origin.secret,
      DEVELOPMENT_KEY_SHA256: await sha256Hex(KEY),
      // Tests change the models between requests.
      MODELS_TTL_MS: '0',
      // An answer begins when its status is known, however long a busy machine pauses.
      EARLY_ANSWER_MS: '600000',
      ...vars,
    },
    onLog: log.handler,
    ...(entry === undefined ? {} : { script: await bundleOf(entry) }),
    ...options,
  });
  const database = (await miniflare.getD1Database('DB')) as unknown as Database;
  const usageDatabase = (await miniflare.getD1Database('USAGE_DB')) as unknown as Database;
  if (!used) {
    await migrate(database, ['migrations']);
    await migrate(usageDatabase, ['usage-migrations']);
  }
  return {
    ...clientOf(url),
    database,
    files: await miniflare.getR2Bucket('FILES'),
    runScheduled: () => runScheduled(miniflare),
    usageDatabase,
    stop: () => miniflare.dispose(),
  };
}
