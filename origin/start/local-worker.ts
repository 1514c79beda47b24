import path from 'node:path';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { unstable_getMiniflareWorkerOptions } from 'wrangler';
import { bundleWorker } from './worker-bundle.ts';

/** A rate limit of the platform's own. */
export interface Shield {
  readonly namespace_id: string;
  readonly simple: { readonly limit: number; readonly period: 10 | 60 };
}

export interface LocalWorkerOptions {
  readonly host: string;
  /** 0 = any that is free. */
  readonly port: number;
  /** Base address of the origin. */
  readonly originUrl: string;
  /** Variables and secrets, besides those of wrangler.toml. */
  readonly vars: Readonly<Record<string, string>>;
  /** Directory that keeps databases and objects; without one they are gone at the end. */
  readonly state?: string;
  readonly ratelimits?: Record<string, Shield>;
  /** Module to start instead of the Worker's own. */
  readonly entry?: string;
}

export interface LocalWorker {
  readonly url: string;
  readonly miniflare: Miniflare;
}

const ROOT = path.resolve(import.meta.dirname, '../..');
const NAME = 'continuo';
const ORIGIN = 'ORIGIN';

/**
 * The Worker in a workerd of its own, with a local database and local objects, bound as wrangler.toml says. Callers
 * reach it without the proxies of `wrangler dev`, which cost each request milliseconds and hide that a client has gone,
 * and without its explorer, which shows the database to whoever asks. A binding carries requests to the origin: the
 * simulator sends what `fetch` sends through a Worker of its own.
 */
export async function openLocalWorker(options: LocalWorkerOptions): Promise<LocalWorker> {
  const { host, port, originUrl, vars, state, ratelimits = {}, entry } = options;
  const { workerOptions } = unstable_getMiniflareWorkerOptions(path.join(ROOT, 'wrangler.toml'));
  const { modulesRules: _, ...configured } = workerOptions;
  const miniflare = new Miniflare({
    ...convertV4MiniflareOptions({
      ...configured,
      name: NAME,
      ratelimits,
      modules: true,
      unsafeDirectSockets: [{ host, port }],
      script: await bundleWorker(false, entry),
      bindings: {
        ...(configured.bindings as Readonly<Record<string, string>>),
        ORIGIN_URL: originUrl,
        ORIGIN_BINDING: ORIGIN,
        ...vars,
      },
      serviceBindings: { [ORIGIN]: { external: { address: new URL(originUrl).host, http: {} } } },
      cf: false,
    }),
    ...(state === undefined ? {} : { resourcePersistencePath: state }),
  });
  const url = (await miniflare.unsafeGetDirectURL(NAME)).origin;
  return { url, miniflare };
}
