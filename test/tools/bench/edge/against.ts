import type { Progress } from '../plan.ts';
import { median, quantile } from '../statistics.ts';
import { type Clients, startClients } from './client-process.ts';
import { type OpenWay, openWorker, openWorkerd, PASSING, plain, startOrigin, streams } from './edge.ts';
import type { Load } from './load.ts';
import { PACED_MODEL } from './pace.ts';
import type { Headers } from './path.ts';

/** Compares the Worker with another gateway before one OpenAI-compatible upstream without a model. */

export interface Gateway {
  /** Base address, with its version. */
  readonly url: string;
  /** Headers of every request. */
  readonly headers: Headers;
}

const LOADS: readonly { readonly name: string; readonly load: Load }[] = [
  { name: 'plain requests/s, 16 clients', load: plain(16, 100, 0) },
  { name: 'plain requests/s, 1 client', load: plain(1, 300, 0) },
  { name: 'events/s, 16 streams of 250 events/s', load: streams(16, 4, 500) },
  { name: 'events/s, 16 streams of 4,000 events/s', load: streams(16, 0.25, 4000) },
];

/** Per second; p50 and p99 in milliseconds, of a request, or an event from write to read. */
export type Rate = readonly [perSecond: number, p50: number, p99: number];

export interface AgainstLoad {
  readonly name: string;
  /** Medians over rounds, by gateway. */
  readonly rates: Readonly<Record<'workerd' | 'worker' | 'gateway', Rate>>;
  /** The Worker's rate divided by the gateway's in the same round; median. */
  readonly ratio: number;
}

async function measure(clients: Clients, load: Load): Promise<Rate> {
  const begun = performance.now();
  const seen = await clients.run(load);
  const seconds = (performance.now() - begun) / 1000;
  const times = seen.flatMap(({ ms, delays }) => (load.stream ? delays : [ms]));
  const count = load.stream ? load.clients * load.tokens : seen.length;
  return [count / seconds, quantile(times, 0.5), quantile(times, 0.99)];
}

const medians = (rates: readonly Rate[]): Rate => [
  median(rates.map(([perSecond]) => perSecond)),
  median(rates.map(([, p50]) => p50)),
  median(rates.map(([, , p99]) => p99)),
];

/** All gateways take turns, because the speed of a machine drifts. The first turn warms up. */
async function measureInTurns(all: readonly Clients[], rounds: number, progress: Progress) {
  const loads: AgainstLoad[] = [];
  for (const [part, { name, load }] of LOADS.entries()) {
    const rates: Rate[][] = all.map(() => []);
    for (let round = 0; round <= rounds; round += 1) {
      progress((part + round / (rounds + 1)) / LOADS.length, name);
      for (const turn of all.keys()) {
        const at = (turn + round) % all.length;
        const rate = await measure(all[at]!, load);
        if (round > 0) rates[at]!.push(rate);
      }
    }
    const [workerd, worker, gateway] = rates as [Rate[], Rate[], Rate[]];
    const ratio = median(worker.map(([perSecond], round) => perSecond / gateway[round]![0]));
    const by = { workerd: medians(workerd), worker: medians(worker), gateway: medians(gateway) };
    loads.push({ name, rates: by, ratio });
  }
  return loads;
}

/** @throws Error if the gateway does not answer */
export async function measureAgainst(
  { url, headers }: Gateway,
  upstreamPort: number,
  rounds: number,
  progress: Progress,
): Promise<AgainstLoad[]> {
  const upstream = await startOrigin(upstreamPort);
  const opened: OpenWay[] = [];
  const clients: Clients[] = [];
  try {
    const models = [{ id: PACED_MODEL.id, contextLength: PACED_MODEL.contextLength }];
    const config = { kind: 'openai', name: 'paced', url: `${upstream.url}/v1`, binding: 'ORIGIN', models };
    const workerd = await openWorkerd(upstream.url, PASSING);
    opened.push(workerd, await openWorker(upstream.url, { vars: { UPSTREAMS: JSON.stringify([config]) } }));
    const ways = [
      { kind: 'openai', url: `${workerd.way.url}/v1`, headers: {} },
      opened[1]!.way,
      { kind: 'openai', url, headers },
    ] as const;
    for (const way of ways) clients.push(await startClients(way));
    return await measureInTurns(clients, rounds, progress);
  } finally {
    for (const one of clients) one.close();
    for (const { close } of opened) await close();
    upstream.child.disconnect();
  }
}
