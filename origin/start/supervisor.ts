import { type Command, ProcessGroup } from './process-group.ts';

export interface SupervisorOptions {
  /** Resolves once the child does its work, after which its death is an accident; before, its start has failed. */
  readonly untilReady: (over: AbortSignal) => Promise<void>;
  readonly onRestart: (name: string, code: number | null, signal: string | null) => void;
}

/**
 * Keeps one child alive: a child that dies after it was ready is started again, one that never was is given up, however
 * long it took: a model that does not fit is found after as many seconds as its files take to read, and the next start
 * would find the same.
 */
export class Supervisor {
  readonly #command: Command;
  readonly #options: SupervisorOptions;
  readonly #ready = Promise.withResolvers<void>();
  #group: ProcessGroup;
  #stopping = false;
  /** Settles when the child is given up or was stopped. */
  readonly ended: Promise<{ readonly code: number | null }>;

  constructor(command: Command, options: SupervisorOptions) {
    this.#command = command;
    this.#options = options;
    this.#group = new ProcessGroup(command);
    this.ended = this.#watch();
  }

  /** Resolves when the child has been ready once. */
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
