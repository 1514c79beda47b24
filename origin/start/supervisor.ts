import { type Command, ProcessGroup } from './process-group.ts';

export interface SupervisorOptions {
  /** Milliseconds a child must have lived for its death to count as an accident, not as a failed start. */
  readonly settledAfterMs: number;
  readonly onRestart: (name: string, code: number | null, signal: string | null) => void;
}

/** Keeps one child alive: a child that dies after it had settled is started again, one that never settled is given up. */
export class Supervisor {
  readonly #command: Command;
  readonly #options: SupervisorOptions;
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

  async #watch(): Promise<{ readonly code: number | null }> {
    for (;;) {
      const begun = performance.now();
      const { code, signal } = await this.#group.ended;
      const settled = performance.now() - begun >= this.#options.settledAfterMs;
      if (this.#stopping || !settled) return { code };
      this.#options.onRestart(this.#command.name, code, signal);
      this.#group = new ProcessGroup(this.#command);
    }
  }

  stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    return this.#group.stop(graceMs);
  }
}
