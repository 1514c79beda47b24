import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { newDirectory } from '../../support/new-directory.ts';
import { freePort } from '../../support/system.ts';
import { ADMIN_KEY_SHA256 } from '../../worker/admin/admin-client.ts';
import { type BillingSystem, startBillingSystem } from '../../worker/support/billing-system.ts';
import { SECRET } from '../../worker/support/fake-origin.ts';
import { spawnOrigin, writeRealModel } from '../../worker/support/real-origin.ts';
import type { WorkerClient } from '../../worker/support/worker.ts';
import { spawnWorker, type WorkerProcess } from '../../worker/support/worker-process.ts';

/** What is killed: a process, the object of the tenant under load, or all processes at once. */
export type Victim = 'origin' | 'workerd' | 'object' | 'system';

/** Short, so that the limiter notices within a second that a Worker is gone. */
const RESERVATION_TTL_MS = 1_000;

/** Restarts objects on demand. */
const ENTRY = 'test/worker/support/entries/restarting-objects.ts';

/**
 * An origin and workerd in processes of their own, to be killed and started again with the same data, and a
 * billing system that goes on.
 */
export class KillableSystem {
  readonly billing: BillingSystem;
  readonly #port: number;
  readonly #model = writeRealModel();
  readonly #state = newDirectory();
  #origin: ChildProcess | null = null;
  #worker: WorkerProcess | null = null;

  private constructor(port: number, billing: BillingSystem) {
    this.#port = port;
    this.billing = billing;
  }

  static async start(): Promise<KillableSystem> {
    const system = new KillableSystem(await freePort(), await startBillingSystem());
    await system.#startOrigin();
    await system.#startWorker();
    return system;
  }

  /** The client of the running Worker. */
  get client(): WorkerClient {
    return this.#worker!;
  }

  /** Kills the victim at once. @param tenant whose object is killed */
  async kill(victim: Victim, tenant: string): Promise<void> {
    if (victim === 'object') await this.client.request(`/object/limiter/restart/${tenant}`);
    else await this.#killProcesses(victim);
  }

  async #killProcesses(victim: Exclude<Victim, 'object'>): Promise<void> {
    const worker = victim === 'origin' ? undefined : this.#worker?.kill();
    if (victim !== 'workerd' && this.#origin) {
      const gone = once(this.#origin, 'exit');
      this.#origin.kill('SIGKILL');
      await gone;
    }
    await worker;
  }

  async restart(victim: Victim): Promise<void> {
    if (victim === 'origin' || victim === 'system') await this.#startOrigin();
    if (victim === 'workerd' || victim === 'system') await this.#startWorker();
  }

  async stop(): Promise<void> {
    await this.#killProcesses('system');
    await this.billing.stop();
    for (const directory of [this.#model, this.#state]) rmSync(directory, { recursive: true, force: true });
  }

  async #startOrigin(): Promise<void> {
    this.#origin = (await spawnOrigin(this.#model, this.#port)).child;
  }

  async #startWorker(): Promise<void> {
    this.#worker = await spawnWorker({
      origin: { url: `http://127.0.0.1:${this.#port}`, secret: SECRET },
      vars: {
        ADMIN_KEY_SHA256,
        RESERVATION_TTL_MS: String(RESERVATION_TTL_MS),
        EARLY_ANSWER_MS: '2000',
        BILLING_URL: this.billing.url,
        BILLING_SECRET: 'a secret for billing',
      },
      options: { state: this.#state, entry: ENTRY },
    });
  }
}
