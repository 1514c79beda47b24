import { type Command, ProcessGroup } from './process-group.ts';

export interface SupervisorOptions {
  /** Resolves once the child works. If it dies before that, its start has failed. */
  readonly untilReady: (over: AbortSignal) => Promise<void>;
  readonly onRestart: (name: string, code: number | null, signal: string | null) => void;
}

/**
 * Keeps one child alive. A child that dies after it was ready is restarted. A child that was never ready is given up,
 * because the next start would fail for the same reason, such as a model that does not fit.
 */
export class Supervisor {
  readonly #command: Command;
  readonly #options: SupervisorOptions;
  readonly #ready = Promise.withResolvers<void>();
  #group: ProcessGroup;
  #stopping = false;
  /** Settles when the child was given up or stopped. */
  readonly ended: Promise<{ readonly code: number | null }>;

  constructor(command: Command, options: SupervisorOptions) {
    this.#command = command;
    this.#options = options;
    this.#group = new ProcessGroup(command);
    this.ended = this.#watch();
  }

  /** Resolves when the child was ready once. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  async #watch(): Promise<{ readonly code: number | null }> {
    for (;;) {
      const { code, signal, wasReady } = await this.#life();
      if (this.#stopping || !wasReady) return { code };
      this.#options.onRestart(this.#command.name, code, signal);
      this.#group = new ProcessGroup(this.#command);
    }
  }

  async #life() {
    const over = new AbortController();
    let wasReady = false;
    const noteReady = () => {
      wasReady = true;
      this.#ready.resolve();
    };
    this.#options.untilReady(over.signal).then(noteReady, () => undefined);
    try {
      return { ...(await this.#group.ended), wasReady };
    } finally {
      over.abort();
    }
  }

  stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    return this.#group.stop(graceMs);
  }
}
