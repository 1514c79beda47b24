import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from '../../../worker/admin/admin-client.ts';
import { startWorker, type WorkerClient } from '../../../worker/support/worker.ts';
import { quantile } from '../statistics.ts';
import { type Clients, startClients } from './client-process.ts';
import type { Load } from './load.ts';
import { PACED_MODEL } from './pace.ts';
import type { Way } from './path.ts';
import { workerdCpuMs } from './workerd-cpu.ts';

/**
 * Measures what the edge adds. The same clients call the same origin, which has no model, over four paths:
 *
 * - directly
 * - through a workerd that forwards bytes without JavaScript
 * - through a workerd that copies them in JavaScript
 * - through the Worker with its database and Durable Objects
 */

const SECRET = 'secret of the benchmark, 32 bytes long';

/** @param port 0 = any free port */
export async function startOrigin(port = 0): Promise<{ url: string; child: ChildProcess }> {
  const script = fileURLToPath(new URL('paced-origin.ts', import.meta.url));
  const child = fork(script, [SECRET, String(port)]);
  const [listening] = (await once(child, 'message')) as [number];
  return { url: `http://127.0.0.1:${listening}`, child };
}

/**
 * Creates a key of a tenant with limits that are never reached, so that every request is counted.
 * @param priced with a price, limits of cost and a balance, too
 */
async function createKey(worker: WorkerClient, priced: boolean): Promise<string> {
  const limits = { requests_per_minute: 1e9, tokens_per_minute: 1e12, concurrent_requests: 1e6 };
  const money = priced ? { micros_per_day: 1e14, micros_per_month: 1e14 } : {};
  const { key } = await tenantWithKey(worker, 'bench', { ...limits, ...money });
  if (priced) {
    const price = { model: PACED_MODEL.id, prompt_micros: 1e6, completion_micros: 2e6 };
    await admin(worker, 'POST', '/prices', price);
    await admin(worker, 'POST', '/credits', { tenant: 'bench', id: 'first', micros: 1e14 });
  }
  return key;
}

export interface OpenWay {
  readonly way: Way;
  readonly close: () => Promise<void>;
}

/** The cost of workerd itself: no JavaScript per event. */
export const PASSING = 'export default { fetch: (request, env) => env.ORIGIN.fetch(request) }';

/** The cost of any relay in JavaScript. */
const COPYING = `
  export default {
    async fetch(request, env) {
      const answer = await env.ORIGIN.fetch(request);
      const reader = answer.body.getReader();
      const pull = async (controller) => {
        const { value, done } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), answer);
    },
  };
`;

/** Reaches the origin through a binding, as the Worker does. */
export async function openWorkerd(originUrl: string, script: string): Promise<OpenWay> {
  const workerd = new Miniflare(
    convertV4MiniflareOptions({
      name: 'workerd',
      modules: true,
      script,
      compatibilityDate: '2026-10-20',
      unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
      serviceBindings: { ORIGIN: { external: { address: new URL(originUrl).host, http: {} } } },
      cf: false,
    }),
  );
  const { origin: url } = await workerd.unsafeGetDirectURL('workerd');
  return { way: { kind: 'origin', url, secret: SECRET }, close: () => workerd.dispose() };
}

interface WorkerSetting {
  readonly entry?: string;
  readonly vars?: Readonly<Record<string, string>>;
  /** Requests cost money, which is limited. */
  readonly priced?: boolean;
}

export async function openWorker(originUrl: string, setting: WorkerSetting = {}): Promise<OpenWay> {
  const { entry = 'worker/index.ts', vars = {}, priced = false } = setting;
  const worker = await startWorker(
    { url: originUrl, secret: SECRET },
    {
      ENVIRONMENT: 'production',
      ADMIN_KEY_SHA256,
      MODELS_TTL_MS: '5000',
      ...vars,
    },
    { entry },
  );
  const headers = { authorization: `Bearer ${await createKey(worker, priced)}` };
  return { way: { kind: 'openai', url: `${worker.url}/v1`, headers }, close: () => worker.stop() };
}

type Spread = readonly [p50: number, p99: number];

/** p50 and p99 of one figure, in milliseconds, by path. */
export interface Comparison {
  readonly name: string;
  readonly direct: Spread;
  readonly bare: Spread;
  readonly copying: Spread;
  readonly worker: Spread;
}

export interface EdgeReport {
  readonly delays: readonly Comparison[];
  /** Plain requests of one client without and with a price and limits of cost, in turns; milliseconds. */
  readonly money: Readonly<Record<'without' | 'with', Spread>>;
  /** Milliseconds of workerd's CPU time per 1,000 streamed tokens. */
  readonly cpu: readonly ({ readonly name: string } & Readonly<
    Record<'bare' | 'copying' | 'worker', number>
  >)[];
}

interface Measurement {
  readonly name: string;
  readonly load: Load;
  /** Repetitions, one after the other. */
  readonly rounds: number;
}

export const plain = (clients: number, requests: number, startMs: number): Load => ({
  clients,
  requests,
  startMs,
  tokens: 1,
  stream: false,
  intervalMs: 0,
  tokensPerEvent: 1,
});

export const streams = (clients: number, intervalMs: number, tokens: number, tokensPerEvent = 1): Load => ({
  clients,
  intervalMs,
  tokens,
  tokensPerEvent,
  requests: 1,
  startMs: 0,
  stream: true,
});

const MEASUREMENTS: readonly Measurement[] = [
  { name: 'plain request, 1 client', load: plain(1, 150, 0), rounds: 3 },
  { name: 'plain request, 16 clients, origin takes 50 to 150 ms', load: plain(16, 30, 100), rounds: 3 },
  { name: '16 plain requests at once', load: { ...plain(16, 1, 100), atOnce: true }, rounds: 20 },
  { name: 'plain request, 16 clients, origin takes 0 ms', load: plain(16, 40, 0), rounds: 3 },
  { name: 'event, 1 stream of 100 tokens/s', load: streams(1, 10, 150), rounds: 3 },
  { name: 'event, 16 streams of 50 tokens/s', load: streams(16, 20, 80), rounds: 3 },
];

/** Returns milliseconds: of plain requests, or of events from the origin's write to the client's read. */
async function measure(clients: Clients, { load, rounds }: Measurement): Promise<number[]> {
  const values: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const { ms, delays } of await clients.run(load)) values.push(...(load.stream ? delays : [ms]));
  }
  return values;
}

const spread = (values: readonly number[]): Spread => [quantile(values, 0.5), quantile(values, 0.99)];

/** Returns p50 and p99 of one client whose tenant's limiter is 100 ms away. */
async function measureDistant(originUrl: string): Promise<Spread> {
  const distant = await openWorker(originUrl, { entry: 'test/worker/support/entries/distant-limiter.ts' });
  const clients = await startClients(distant.way);
  try {
    return spread(await measure(clients, { name: 'distant', load: plain(1, 60, 0), rounds: 1 }));
  } finally {
    clients.close();
    await distant.close();
  }
}

const MONEY_TURNS = 20;

/** Two Workers take turns, because the difference is smaller than the drift of a machine. */
async function measureMoney(originUrl: string): Promise<EdgeReport['money']> {
  const opened = [await openWorker(originUrl), await openWorker(originUrl, { priced: true })];
  const clients = await Promise.all(opened.map(({ way }) => startClients(way)));
  const measurement = { name: 'money', load: plain(1, 150, 0), rounds: 1 };
  const values: number[][] = [[], []];
  try {
    // The first turn warms up.
    for (let turn = 0; turn <= MONEY_TURNS; turn += 1) {
      for (const side of turn % 2 === 0 ? [0, 1] : [1, 0]) {
        const seen = await measure(clients[side]!, measurement);
        if (turn > 0) values[side]!.push(...seen);
      }
    }
  } finally {
    for (const one of clients) one.close();
    for (const { close } of opened) await close();
  }
  return { without: spread(values[0]!), with: spread(values[1]!) };
}

const CPU_LOADS = [
  { name: '1 stream of 200 tokens/s', clients: 1, intervalMs: 5, tokens: 600, tokensPerEvent: 1 },
  { name: '16 streams of 50 tokens/s', clients: 16, intervalMs: 20, tokens: 150, tokensPerEvent: 1 },
  // The origin's pace at 16 streams on 2 cores: an event per stream every 53 ms.
  {
    name: '16 streams of 250 tokens/s, merged events',
    clients: 16,
    intervalMs: 53,
    tokens: 650,
    tokensPerEvent: 13,
  },
  {
    name: '16 streams, all tokens in few writes',
    clients: 16,
    intervalMs: 0,
    tokens: 2000,
    tokensPerEvent: 1,
  },
] as const;

async function cpuPerThousand(clients: Clients): Promise<number[]> {
  const figures: number[] = [];
  for (const { clients: count, intervalMs, tokens, tokensPerEvent } of CPU_LOADS) {
    const before = workerdCpuMs();
    await clients.run(streams(count, intervalMs, tokens, tokensPerEvent));
    figures.push(((workerdCpuMs() - before) * 1000) / (count * tokens));
  }
  return figures;
}

/** Measures one path. Each `open` starts its own workerd, so that its CPU time can be measured. */
async function measureWay(open: () => Promise<OpenWay>, withCpu: boolean) {
  const { way, close } = await open();
  const clients = await startClients(way);
  try {
    await clients.run(plain(16, 60, 0)); // warm-up
    const spreads: Spread[] = [];
    for (const measurement of MEASUREMENTS) spreads.push(spread(await measure(clients, measurement)));
    return { spreads, cpu: withCpu ? await cpuPerThousand(clients) : [] };
  } finally {
    clients.close();
    await close();
  }
}

export async function measureEdge(progress: (share: number, stage: string) => void): Promise<EdgeReport> {
  const origin = await startOrigin();
  try {
    progress(0, 'edge: the origin alone');
    const direct = await measureWay(
      async () => ({ way: { kind: 'origin', url: origin.url, secret: SECRET }, close: async () => {} }),
      false,
    );
    progress(0.25, 'edge: workerd alone');
    const bare = await measureWay(() => openWorkerd(origin.url, PASSING), true);
    progress(0.45, 'edge: workerd and a relay that copies');
    const copying = await measureWay(() => openWorkerd(origin.url, COPYING), true);
    progress(0.65, 'edge: the Worker');
    const worker = await measureWay(() => openWorker(origin.url), true);
    progress(0.9, 'edge: limits far away');
    const distant = await measureDistant(origin.url);
    progress(0.95, 'edge: money');
    const money = await measureMoney(origin.url);
    const delays = MEASUREMENTS.map(({ name }, index) => ({
      name,
      direct: direct.spreads[index]!,
      bare: bare.spreads[index]!,
      copying: copying.spreads[index]!,
      worker: worker.spreads[index]!,
    }));
    return {
      money,
      delays: [...delays, { ...delays[0]!, name: 'the first, limits kept 100 ms away', worker: distant }],
      cpu: CPU_LOADS.map(({ name }, index) => ({
        name,
        bare: bare.cpu[index]!,
        copying: copying.cpu[index]!,
        worker: worker.cpu[index]!,
      })),
    };
  } finally {
    origin.child.disconnect();
  }
}
