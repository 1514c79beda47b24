import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { sha256Hex } from '../../../shared/signing.ts';
import { startWorker } from '../../worker/support/worker.ts';
import { quantile } from '../statistics.ts';
import type { Pace } from './pace.ts';
import { directPath, type Path, type Seen, workerPath } from './path.ts';
import { workerdCpuMs } from './workerd-cpu.ts';

/**
 * What the edge adds: the same client and the same origin (one without a model), asked directly, through a workerd that
 * only passes bytes on, and through the Worker with its real database and Durable Objects.
 */

const SECRET = 'secret of the benchmark';
const ADMIN_KEY = 'admin-key-of-the-benchmark';

async function startOrigin(): Promise<{ url: string; child: ChildProcess }> {
  const child = fork(fileURLToPath(new URL('paced-origin.ts', import.meta.url)), [SECRET]);
  const [port] = (await once(child, 'message')) as [number];
  return { url: `http://127.0.0.1:${port}`, child };
}

/** A stored key of a tenant with limits that never bind: every request takes the whole way. */
async function createKey(url: string): Promise<string> {
  const admin = async (path: string, body: unknown): Promise<{ key: string }> => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
    const answer = await fetch(`${url}/admin/v1${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return answer.json() as Promise<{ key: string }>;
  };
  const limits = { requests_per_minute: 1e9, tokens_per_minute: 1e12, concurrent_requests: 1e6 };
  await admin('/tenants', { id: 'bench', name: 'bench', limits });
  return (await admin('/keys', { tenant: 'bench', name: 'bench' })).key;
}

interface OpenPath {
  readonly path: Path;
  readonly close: () => Promise<void>;
}

const close = async (): Promise<void> => {};

/** What workerd itself costs: no line of JavaScript per event. */
async function openBare(originUrl: string): Promise<OpenPath> {
  const script = `export default { fetch: (r) => fetch('${originUrl}' + new URL(r.url).pathname, r) }`;
  const workerd = new Miniflare(
    convertV4MiniflareOptions({
      name: 'bare',
      modules: true,
      script,
      compatibilityDate: '2026-10-20',
      unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
      cf: false,
    }),
  );
  const { origin } = await workerd.unsafeGetDirectURL('bare');
  return { path: await directPath(origin, SECRET), close: () => workerd.dispose() };
}

async function openWorker(originUrl: string, entry = 'worker/index.ts', regions = 'off'): Promise<OpenPath> {
  const worker = await startWorker(
    { url: originUrl, secret: SECRET },
    { ADMIN_KEY_SHA256: await sha256Hex(ADMIN_KEY), MODELS_TTL_MS: '5000', LIMIT_REGIONS: regions },
    { entry },
  );
  return { path: workerPath(worker.url, await createKey(worker.url)), close: () => worker.stop() };
}

interface Load {
  readonly clients: number;
  /** Of each client, one after the other. */
  readonly requests: number;
  readonly tokens: number;
  readonly stream: boolean;
  readonly pace: (index: number) => Pace;
}

/** What was seen of each request, its `ms` without the time the origin took by its pace. */
async function run(path: Path, { clients, requests, tokens, stream, pace }: Load): Promise<Seen[]> {
  const seen: Seen[] = [];
  let begun = 0;
  const client = async (): Promise<void> => {
    for (let count = 0; count < requests; count += 1) {
      const own = pace(begun++);
      const { ms, delays } = await path.run(own, tokens, stream);
      seen.push({ ms: ms - own.startMs, delays });
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return seen;
}

/** p50 and p99 of one figure, in milliseconds, by way. */
export interface Comparison {
  readonly name: string;
  readonly direct: readonly [p50: number, p99: number];
  readonly bare: readonly [p50: number, p99: number];
  readonly worker: readonly [p50: number, p99: number];
}

export interface EdgeReport {
  readonly delays: readonly Comparison[];
  /** Milliseconds of workerd's CPU per 1,000 streamed tokens. */
  readonly cpu: readonly { readonly name: string; readonly bare: number; readonly worker: number }[];
}

const ROUNDS = 3;

interface Measurement {
  readonly name: string;
  readonly measure: (path: Path) => Promise<readonly number[]>;
}

/** Origins that take about so long, each time differently: clients that move in step would only wait for each other. */
const about =
  (ms: number) =>
  (index: number): Pace => ({ startMs: ms * (0.5 + ((index * 37) % 101) / 101), intervalMs: 0 });

const times =
  (clients: number, requests: number, startMs: number) =>
  async (path: Path): Promise<number[]> => {
    const load = { clients, requests, tokens: 1, stream: false, pace: about(startMs) };
    return (await run(path, load)).map(({ ms }) => ms);
  };

const streams = (clients: number, intervalMs: number, tokens: number): Load => ({
  ...{ clients, requests: 1, tokens, stream: true },
  pace: () => ({ startMs: 0, intervalMs }),
});

const delays =
  (...load: Parameters<typeof streams>) =>
  async (path: Path): Promise<number[]> =>
    (await run(path, streams(...load))).flatMap((seen) => seen.delays);

const MEASUREMENTS: readonly Measurement[] = [
  { name: 'plain request, 1 client', measure: times(1, 150, 0) },
  { name: 'plain request, 16 clients, origin takes 50 to 150 ms', measure: times(16, 20, 100) },
  { name: 'plain request, 16 clients, origin takes 0 ms', measure: times(16, 40, 0) },
  { name: 'event, 1 stream of 100 tokens/s', measure: delays(1, 10, 150) },
  { name: 'event, 16 streams of 50 tokens/s', measure: delays(16, 20, 80) },
];

/** p50 and p99 of a lone client whose tenant's limits are kept 100 ms away. */
async function measureDistant(
  originUrl: string,
  regions: 'off' | 'colo',
): Promise<readonly [number, number]> {
  const { path, close } = await openWorker(originUrl, 'test/worker/support/distant-limiter.ts', regions);
  try {
    const values = await times(1, 60, 0)(path);
    return [quantile(values, 0.5), quantile(values, 0.99)];
  } finally {
    path.close();
    await close();
  }
}

const CPU_LOADS = [
  { name: '1 stream of 200 tokens/s', clients: 1, intervalMs: 5, tokens: 600 },
  { name: '16 streams of 50 tokens/s', clients: 16, intervalMs: 20, tokens: 150 },
  { name: '16 streams, all tokens in few writes', clients: 16, intervalMs: 0, tokens: 2000 },
] as const;

async function cpuPerThousand(path: Path): Promise<number[]> {
  const figures: number[] = [];
  for (const { clients, intervalMs, tokens } of CPU_LOADS) {
    const before = workerdCpuMs();
    await run(path, streams(clients, intervalMs, tokens));
    figures.push(((workerdCpuMs() - before) * 1000) / (clients * tokens));
  }
  return figures;
}

/** Measures one way after the other; each `open` starts its workerd alone, so that its CPU is its own. */
async function measureWay(open: () => Promise<OpenPath>, withCpu: boolean) {
  const { path, close } = await open();
  try {
    await times(16, 40, 0)(path); // warming up
    const spreads: (readonly [number, number])[] = [];
    for (const { measure } of MEASUREMENTS) {
      const values: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) values.push(...(await measure(path)));
      spreads.push([quantile(values, 0.5), quantile(values, 0.99)]);
    }
    return { spreads, cpu: withCpu ? await cpuPerThousand(path) : [] };
  } finally {
    path.close();
    await close();
  }
}

export async function measureEdge(progress: (share: number, stage: string) => void): Promise<EdgeReport> {
  const origin = await startOrigin();
  try {
    progress(0, 'edge: the origin alone');
    const direct = await measureWay(
      async () => ({ path: await directPath(origin.url, SECRET), close }),
      false,
    );
    progress(0.3, 'edge: workerd alone');
    const bare = await measureWay(() => openBare(origin.url), true);
    progress(0.6, 'edge: the Worker');
    const worker = await measureWay(() => openWorker(origin.url), true);
    progress(0.9, 'edge: limits far away');
    const delays = MEASUREMENTS.map(({ name }, index) => ({
      name,
      direct: direct.spreads[index]!,
      bare: bare.spreads[index]!,
      worker: worker.spreads[index]!,
    }));
    const distant = await measureDistant(origin.url, 'off');
    const regional = await measureDistant(origin.url, 'colo');
    return {
      delays: [
        ...delays,
        { ...delays[0]!, name: 'the first, limits kept 100 ms away', worker: distant },
        { ...delays[0]!, name: 'the same, a region with leased slices', worker: regional },
      ],
      cpu: CPU_LOADS.map(({ name }, index) => ({ name, bare: bare.cpu[index]!, worker: worker.cpu[index]! })),
    };
  } finally {
    origin.child.disconnect();
  }
}
