import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { getCACertificates, rootCertificates } from 'node:tls';
import { fileURLToPath, URL } from 'node:url';
import { promisify } from 'node:util';
import {
  convertV4MiniflareOptions,
  Miniflare,
  type StructuredLogsHandler,
  type V4WorkerOptions,
} from 'miniflare';
import { PACKAGED_WORKER, ROOT } from './installation.ts';
import { localIds, migrateLocalDatabases } from './local-databases.ts';
import { keyExchange, type PageLink } from './page-key.ts';
import { preparedWorker } from './prepared-worker.ts';

/** A rate limit of the platform. */
export interface PlatformRateLimit {
  readonly namespace_id: string;
  readonly simple: { readonly limit: number; readonly period: 10 | 60 };
}

export interface LocalWorkerOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Base addresses of origins; their names distinguish several. */
  readonly origins: readonly { readonly name: string; readonly url: string }[];
  /** Variables and secrets in addition to those of wrangler.toml. */
  readonly vars: Readonly<Record<string, string>>;
  /** The link to the page; absent = there is none. */
  readonly pageLink?: PageLink;
  /** Directory of databases and objects; absent = empty ones that are lost in the end. */
  readonly state?: string;
  readonly ratelimits?: Record<string, PlatformRateLimit>;
  /** Bundled module; absent = that of the Worker's entry. */
  readonly script?: string;
  /** Receives the lines that workerd logs; absent = they are printed. */
  readonly onLog?: StructuredLogsHandler;
}

interface LocalWorker {
  readonly url: string;
  readonly miniflare: Miniflare;
}

const NAME = 'continuo';
/** The first requests come before it. */
const FIRST_DAILY_WORK_MS = 5_000;
const DAY_MS = 86_400_000;
/** Worker that serves the page's files; the binding in wrangler.toml. */
const ASSETS = 'ASSETS';
const SERVE_ASSETS = `export default { fetch: (request, env) => env.${ASSETS}.fetch(request) };`;

/**
 * Runs the Worker in workerd with a local database and local objects, bound as in wrangler.toml. Unlike
 * `wrangler dev`, it has no proxies, which delay requests and hide client disconnects, and no database
 * explorer. Requests to the origin go through a binding, because the simulator sends every `fetch` through
 * another Worker.
 */
export async function openLocalWorker(options: LocalWorkerOptions): Promise<LocalWorker> {
  const { host, port, vars, pageLink, state, ratelimits = {}, onLog } = options;
  if (state !== undefined) provideAuthorities(state);
  const [prepared] = await Promise.all([preparedWorker(), existsSync(PACKAGED_WORKER) ? null : buildSite()]);
  const { configured, assets, databases, script } = prepared;
  if (state !== undefined) await migrateLocalDatabases(databases, state);
  const main: V4WorkerOptions = {
    ...configured,
    name: NAME,
    ratelimits,
    rootPath: ROOT,
    modules: true,
    unsafeDirectSockets: [{ host, port }],
    script: options.script ?? script,
    d1Databases: localIds(databases.map(({ binding }) => binding)),
    bindings: {
      ...(configured.bindings as Readonly<Record<string, string>>),
      LOG_REQUESTS: 'false',
      ...originVariables(options),
      ...vars,
    },
    serviceBindings: {
      ...originBindings(options),
      [ASSETS]: ASSETS,
      // Checks the address that a name resolves to, at each connection.
      PUBLIC_NETWORK: { network: { allow: ['public'], tlsOptions: { trustBrowserCas: true } } },
      ...(pageLink && { PAGE_KEY: keyExchange(pageLink) }),
    },
  };
  // In a Worker of its own: with assets, the simulator sends every request through two more Workers.
  const site: V4WorkerOptions = {
    name: ASSETS,
    assets: { ...assets, directory: path.join(ROOT, assets.directory) },
    modules: true,
    script: SERVE_ASSETS,
  };
  const miniflare = new Miniflare({
    ...convertV4MiniflareOptions({ workers: [main, site], cf: false }),
    ...(state === undefined ? {} : { resourcePersistencePath: state }),
    ...(onLog === undefined ? {} : { handleStructuredLogs: onLog }),
  });
  try {
    const url = (await miniflare.unsafeGetDirectURL(NAME)).origin;
    if (state !== undefined) repeatDailyWork(miniflare);
    return { url, miniflare };
  } catch (error) {
    // A simulator that cannot listen would keep the process running.
    await miniflare.dispose();
    throw error;
  }
}

/**
 * Runs the Worker's daily work, because the simulator fires no cron triggers. Also soon after the start: some
 * hosts do not run for a whole day.
 */
function repeatDailyWork(miniflare: Miniflare): void {
  const run = async () => {
    const worker = await miniflare.getWorker(NAME);
    const { outcome } = await worker.scheduled();
    if (outcome !== 'ok') console.error(JSON.stringify({ event: 'daily_work_failed', outcome }));
  };
  // The end of the process interrupts a call, and that is no fault.
  const runUntilEnd = () => void run().catch(() => {});
  setTimeout(runUntilEnd, FIRST_DAILY_WORK_MS).unref();
  setInterval(runUntilEnd, DAY_MS).unref();
}

/** ORIGIN for the first, so that a list of upstreams can name it. */
const bindingOf = (index: number): string => (index === 0 ? 'ORIGIN' : `ORIGIN_${index + 1}`);

function originVariables({ origins }: LocalWorkerOptions): Record<string, string> {
  const upstreams = origins.map((origin, index) => ({
    kind: 'origin',
    binding: bindingOf(index),
    ...origin,
  }));
  if (upstreams.length > 1) return { UPSTREAMS: JSON.stringify(upstreams) };
  return { ORIGIN_URL: origins[0]!.url, ORIGIN_BINDING: bindingOf(0) };
}

const originBindings = ({ origins }: LocalWorkerOptions) =>
  Object.fromEntries(
    origins.map(({ url }, index) => [
      bindingOf(index),
      { external: { address: new URL(url).host, http: {} } },
    ]),
  );

/** workerd starts only with certificates of authorities, which small images lack. Node brings its own. */
function provideAuthorities(directory: string): void {
  if (getCACertificates('system').length > 0) return;
  mkdirSync(directory, { recursive: true });
  process.env.SSL_CERT_FILE = path.join(directory, 'authorities.pem');
  writeFileSync(process.env.SSL_CERT_FILE, rootCertificates.join('\n'));
}

let siteBuilt: Promise<unknown> | null = null;

/** Writes the package's files into an empty directory: modules, one for the Worker, the page, the model. */
export const buildSite = (): Promise<unknown> =>
  (siteBuilt ??= promisify(execFile)(process.execPath, [
    fileURLToPath(import.meta.resolve('@continuo/site/build/main.ts')),
  ]));
