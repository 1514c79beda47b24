import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Environment } from '@continuo/origin/config/environment.ts';
import { errorCode } from '@continuo/shared/error-details.ts';

export interface Command {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  /** All variables of the process. */
  readonly env: Environment;
  /** Receives all output of the process. */
  readonly logFile: string;
}

/**
 * Runs a child and its descendants as one process group. One signal reaches all of them; the terminal's Ctrl-C reaches
 * only the launcher.
 */
export class ProcessGroup {
  readonly name: string;
  /** Settles when the child has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly #child: ChildProcess;

  constructor(command: Command) {
    const log = openSync(command.logFile, 'a');
    this.name = command.name;
    this.#child = spawn(command.file, command.args, {
      detached: true,
      env: command.env,
      // Its stdin stays open, so that the child notices when the launcher is gone.
      stdio: ['pipe', log, log],
    });
    closeSync(log);
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code, signal) => resolve({ code, signal }));
    });
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Sends SIGTERM, waits, and kills what is left after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#signal('SIGTERM');
    const timer = setTimeout(() => this.#signal('SIGKILL'), graceMs);
    await this.ended.catch(() => undefined);
    clearTimeout(timer);
    // Descendants may have ignored the first signal.
    this.#signal('SIGKILL');
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if (errorCode(error) !== 'ESRCH') throw error;
    }
  }
}
