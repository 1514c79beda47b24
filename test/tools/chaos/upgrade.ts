import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { newDirectory } from '../../support/new-directory.ts';
import { freePort } from '../../support/system.ts';
import { admin, tenantWithKey } from '../../worker/admin/admin-client.ts';
import { spawnOrigin, writeRealModel } from '../../worker/support/real-origin.ts';
import { clientOf } from '../../worker/support/worker.ts';
import { add, LOAD_REQUESTS, type Received, sendLoad } from './kill-load.ts';
import { patiently } from './kills.ts';
import {
  previousRelease,
  type Release,
  type Running,
  startWorkerOf,
  stoppable,
  THIS_RELEASE,
} from './releases.ts';
import type { Measurement, Scenario } from './scenario.ts';

/** Load between two steps of an upgrade. */
const STEADY_MS = 3_000;
/** Workers of 0.2.0 ask every five seconds for the models of an origin that was away. */
const SEEN_MS = 6_000;
/**
 * The platform lets a replaced isolate finish its work in the background, which delivers its last
 * settlements.
 */
const BACKGROUND_MS = 5_000;
const TENANT = 'upgraded';
/** Requests to the older Worker. */
const REFUSALS = 20;

/** Two origins and a Worker, each of which can be replaced by another release. */
class RollingSystem {
  readonly #model = writeRealModel();
  readonly #state = newDirectory();
  readonly #ports: readonly number[];
  readonly #origins: Running[] = [];
  readonly #workerPort: number;
  #worker: Running | null = null;

  private constructor(ports: readonly number[], workerPort: number) {
    this.#ports = ports;
    this.#workerPort = workerPort;
  }

  static async start(release: Release): Promise<RollingSystem> {
    const system = new RollingSystem([await freePort(), await freePort()], await freePort());
    for (const index of [0, 1]) await system.#startOrigin(release, index);
    await system.replaceWorker(release);
    return system;
  }

  get client() {
    return clientOf(`http://127.0.0.1:${this.#workerPort}`);
  }

  async #startOrigin({ root }: Release, index: number): Promise<void> {
    const { child } = await spawnOrigin(this.#model, this.#ports[index], root);
    child.stdout?.resume();
    this.#origins[index] = stoppable(child);
  }

  /**
   * Replaces one origin after the other: all isolates have seen the first one again before the second one
   * stops.
   */
  async replaceOrigins(release: Release): Promise<void> {
    for (const index of [0, 1]) {
      await this.#origins[index]!.stop();
      await this.#startOrigin(release, index);
      await sleep(SEEN_MS);
    }
  }

  /** On one host, no request may run meanwhile: the platform keeps both Workers until the old one is idle. */
  async replaceWorker(release: Release): Promise<void> {
    if (this.#worker !== null) await sleep(BACKGROUND_MS);
    await this.#worker?.stop();
    const origins = this.#ports.map((port) => `http://127.0.0.1:${port}`);
    this.#worker = await startWorkerOf(release, { port: this.#workerPort, state: this.#state, origins });
  }

  async stop(): Promise<void> {
    await this.#worker?.stop();
    for (const origin of this.#origins) await origin.stop();
    for (const directory of [this.#model, this.#state]) rmSync(directory, { recursive: true, force: true });
  }
}

/** Keeps requests running while `change` runs, and some seconds longer. */
async function underLoad(system: RollingSystem, key: string, change: () => Promise<void>): Promise<Received> {
  let isOver = false;
  const load = sendLoad(system.client, key, () => isOver);
  try {
    await change();
    await sleep(STEADY_MS);
  } finally {
    isOver = true;
  }
  return load;
}

/**
 * A Worker that does not know the format of the objects must refuse requests with 503, and change nothing.
 * Returns how many it does not refuse.
 */
async function notRefused({ client }: RollingSystem, key: string): Promise<number> {
  let count = 0;
  for (let request = 0; request < REFUSALS; request += 1) {
    const headers = { authorization: `Bearer ${key}` };
    const { status } = await client.post({ model: 'default', prompt: 'Hi', max_tokens: 1 }, { headers });
    count += Number(status !== 503);
  }
  return count;
}

async function run(): Promise<readonly Measurement[]> {
  const previous = previousRelease();
  console.log(`from ${previous.name} to the working tree, with an attempt to go back`);
  const system = await RollingSystem.start(previous);
  try {
    const limits = { concurrent_requests: 2 * LOAD_REQUESTS };
    const { key } = await tenantWithKey(system.client, TENANT, limits);
    const steady = () => underLoad(system, key, async () => {});
    // Origins, then the Worker.
    let received = await underLoad(system, key, () => system.replaceOrigins(THIS_RELEASE));
    await system.replaceWorker(THIS_RELEASE);
    received = add(received, await steady());
    await system.replaceWorker(previous);
    const unexpected = await notRefused(system, key);
    await system.replaceWorker(THIS_RELEASE);
    received = add(received, await steady());
    const { completion_tokens: billed = 0, completed = 0 } = await patiently(
      async () => (await admin(system.client, 'GET', `/usage?tenant=${TENANT}`)).body.total,
      ({ completion_tokens: tokens = 0, completed: requests = 0 }) =>
        tokens >= received.tokens && requests >= received.sent.length,
    );
    return [
      { figure: 'requests', value: received.sent.length },
      { figure: 'failed requests', value: received.sent.length - received.complete, atMost: 0 },
      { figure: 'requests that the older Worker does not refuse', value: unexpected, atMost: 0 },
      { figure: 'tokens received', value: received.tokens, atLeast: 1 },
      { figure: 'tokens billed minus received', value: billed - received.tokens, atMost: 0, atLeast: 0 },
      {
        figure: 'requests in the ledger minus sent',
        value: completed - received.sent.length,
        atMost: 0,
        atLeast: 0,
      },
    ];
  } finally {
    await system.stop();
    previous.remove();
  }
}

export const upgrade: Scenario = {
  name: 'upgrade',
  summary: 'Upgrades from the previous release under load. Its Worker is put back for a moment.',
  run,
};
