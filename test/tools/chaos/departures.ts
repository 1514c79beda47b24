import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type System, startSystem } from '../../support/system.ts';
import { type Measurement, newKey, newTenant, type Scenario, usageOf } from './scenario.ts';

/** Milliseconds after which a client leaves: before and after a plain answer has begun. */
const LEAVES_AFTER_MS = [500, 2_700];
const ALLOWED_S = 3;

const WAYS: readonly [how: string, leave: (request: ClientRequest) => unknown][] = [
  ['FIN', (request) => request.destroy()],
  ['RST', (request) => request.socket?.resetAndDestroy()],
];

const LONG = { model: 'default', prompt: 'Once upon a time', max_tokens: 1_900, n: 8, ignore_eos: true };

function open({ url }: System, key: string, body: unknown): ClientRequest {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const request = httpRequest(`${url}/v1/completions`, { method: 'POST', agent: false, headers });
  // Unread bytes would turn a FIN into a reset.
  request.on('response', (response: IncomingMessage) => response.resume().on('error', () => {}));
  request.on('error', () => {});
  request.end(JSON.stringify(body));
  return request;
}

/** Resolves when the tenant's only slot is free. */
async function slotIsFree(system: System, key: string): Promise<void> {
  for (;;) {
    const request = open(system, key, { ...LONG, stream: true });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    // Not a reset: if the answer has ended, Node would never exit after it.
    request.destroy();
    if (response.statusCode === 200) return;
    await sleep(20);
  }
}

/** Returns the seconds from the departure until the slot is free, and until the bill is final. */
async function depart(
  system: System,
  tenant: string,
  stream: boolean,
  afterMs: number,
  leave: (request: ClientRequest) => unknown,
): Promise<{ readonly free: number; readonly final: number }> {
  const key = await newTenant(system, tenant, { concurrent_requests: 1 });
  const probe = await newKey(system, tenant);
  const request = open(system, key, { ...LONG, stream });
  await sleep(afterMs);
  leave(request);
  const left = performance.now();
  const since = () => (performance.now() - left) / 1000;
  await slotIsFree(system, probe);
  const free = since();
  const query = `tenant=${tenant}&key=${key.split('-')[1]}`;
  await usageOf(system, query, ({ cancelled }) => cancelled > 0);
  return { free, final: since() };
}

async function measureAll(system: System, phase: string): Promise<Measurement[]> {
  const figures: Measurement[] = [];
  for (const [how, leave] of WAYS) {
    for (const stream of [true, false]) {
      const kind = stream ? 'stream' : 'plain';
      let [free, final] = [0, 0];
      for (const ms of LEAVES_AFTER_MS) {
        const tenant = [how, kind, phase, ms].join('-').toLowerCase();
        const measured = await depart(system, tenant, stream, ms, leave);
        free = Math.max(free, measured.free);
        final = Math.max(final, measured.final);
      }
      const figure = `${how}, ${kind}, ${phase}:`;
      figures.push({ figure: `${figure} slot free, s`, value: free, atMost: ALLOWED_S });
      figures.push({ figure: `${figure} bill final, s`, value: final, atMost: ALLOWED_S });
    }
  }
  return figures;
}

export const departures: Scenario = {
  name: 'departures',
  summary: 'Clients that close or reset a running or waiting request after 0.5 and 2.7 s.',
  async run() {
    const system = await startSystem({ CONTINUO_SLOTS: '1' });
    try {
      const running = await measureAll(system, 'running');
      // Takes the only slot of the origin, so that all others wait.
      const hog = open(system, system.apiKey, { ...LONG, n: 100, stream: true });
      await once(hog, 'response');
      const waiting = await measureAll(system, 'waiting');
      hog.destroy();
      return [...running, ...waiting];
    } finally {
      await system.stop();
    }
  },
};
