import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../../support/system.ts';
import { ADMIN_KEY_SHA256 } from '../../worker/admin/admin-client.ts';
import { SECRET } from '../../worker/support/fake-origin.ts';
import { spawnOrigin, writeRealModel } from '../../worker/support/real-origin.ts';
import type { WorkerClient } from '../../worker/support/worker.ts';
import { spawnWorker, type WorkerProcess } from '../../worker/support/worker-process.ts';

export type Victim = 'origin' | 'workerd';

/** Short, so that the limiter notices within a second that a Worker is gone. */
const RESERVATION_TTL_MS = 1_000;

/** An origin and workerd in processes of their own, to be killed and started again with the same data. */
export class KillableSystem {
  readonly #port: number;
  readonly #model = writeRealModel();
  readonly #state = mkdtempSync(path.join(tmpdir(), 'continuo-kills-'));
  #origin: ChildProcess | null = null;
  #worker: WorkerProcess | null = null;

  private constructor(port: number) {
    this.#port = port;
  }

  static async start(): Promise<KillableSystem> {
    const system = new KillableSystem(await freePort());
    await system.#startOrigin();
    await system.#startWorker();
    return system;
  }

  /** The client of the running Worker. */
  get client(): WorkerClient {
    return this.#worker!;
  }

  /** Kills the victim at once. */
  async kill(victim: Victim): Promise<void> {
    if (victim === 'workerd') return this.#worker!.kill();
    const gone = once(this.#origin!, 'exit');
    this.#origin!.kill('SIGKILL');
    await gone;
  }

  async restart(victim: Victim): Promise<void> {
    if (victim === 'workerd') await this.#startWorker();
    else await this.#startOrigin();
  }

  async stop(): Promise<void> {
    await this.#worker?.kill();
    if (this.#origin) await this.kill('origin');
    for (const directory of [this.#model, this.#state]) rmSync(directory, { recursive: true, force: true });
  }

  async #startOrigin(): Promise<void> {
    this.#origin = (await spawnOrigin(this.#model, this.#port)).child;
  }

  async #startWorker(): Promise<void> {
    this.#worker = await spawnWorker({
      origin: { url: `http://127.0.0.1:${this.#port}`, secret: SECRET },
      vars: { ADMIN_KEY_SHA256, RESERVATION_TTL_MS: String(RESERVATION_TTL_MS), EARLY_ANSWER_MS: '2000' },
      options: { state: this.#state },
    });
  }
}
