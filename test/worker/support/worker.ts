import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { unstable_getMiniflareWorkerOptions } from 'wrangler';
import { sha256Hex } from '../../../shared/signing.ts';
import { bundleWorker } from './bundle.ts';
import { type Database, migrate } from './database.ts';
import type { FakeOrigin } from './fake-origin.ts';

/** A Worker as its callers see it. */
export interface WorkerClient {
  readonly url: string;
  /** A request with the development key. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** POST of JSON with the development key. */
  post(body: unknown, init?: RequestInit): Promise<Response>;
}

/** The Worker in a real workerd, reached over HTTP. */
export interface RunningWorker extends WorkerClient {
  /** Its D1 database, migrated. */
  readonly database: Database;
  stop(): Promise<void>;
}

export const KEY = 'test-key';

const ROOT = path.resolve(import.meta.dirname, '../../..');

/** A rate limit of the platform's own. */
export interface Shield {
  readonly namespace_id: string;
  readonly simple: { readonly limit: number; readonly period: 10 | 60 };
}

export interface WorkerOptions {
  /** Bindings of the platform's rate limits; none by default, since they would keep the tests out, too. */
  readonly ratelimits?: Record<string, Shield>;
  /** Module to start instead of the Worker's own. */
  readonly entry?: string;
  /** Directory that keeps databases and objects; a later Worker goes on with what is there. */
  readonly state?: string;
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
  };
}

/** @param vars variables besides those of wrangler.toml */
export async function startWorker(
  origin: Pick<FakeOrigin, 'url' | 'secret'>,
  vars: Readonly<Record<string, string>> = {},
  { ratelimits = {}, entry = 'worker/index.ts', state }: WorkerOptions = {},
): Promise<RunningWorker> {
  const { workerOptions } = unstable_getMiniflareWorkerOptions(path.join(ROOT, 'wrangler.toml'));
  const { modulesRules: _, ...options } = workerOptions;
  const used = state !== undefined && existsSync(state) && readdirSync(state).length > 0;
  const miniflare = new Miniflare({
    ...convertV4MiniflareOptions({
      ...options,
      name: 'continuo',
      ratelimits,
      modules: true,
      // Past the proxy that miniflare puts in front: it would hide that a client has gone.
      unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
      script: await bundleWorker(false, entry),
      bindings: {
        ...(options.bindings as Readonly<Record<string, unknown>>),
        ORIGIN_URL: origin.url,
        ORIGIN_SECRET: origin.secret,
        DEVELOPMENT_KEY_SHA256: await sha256Hex(KEY),
        // Tests change the models between requests.
        MODELS_TTL_MS: '0',
        ...vars,
      },
      cf: false,
    }),
    ...(state === undefined ? {} : { resourcePersistencePath: state }),
  });
  const url = (await miniflare.unsafeGetDirectURL('continuo')).origin;
  const database = (await miniflare.getD1Database('DB')) as unknown as Database;
  if (!used) await migrate(database);
  return { ...clientOf(url), database, stop: () => miniflare.dispose() };
}
