import { type ChildProcess, spawn } from 'node:child_process';
import type { Environment } from '@continuo/origin/config/environment.ts';
import { errorCode } from '@continuo/shared/error-details.ts';
import type { OutputLog } from './output-log.ts';

export interface Command {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  /** All variables of the process. */
  readonly env: Environment;
  /** Receives all output of the process. */
  readonly log: OutputLog;
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
  /** Resolves when nothing holds the output of the child any more. */
  readonly #closed: Promise<unknown>;

  constructor(command: Command) {
    this.name = command.name;
    this.#child = spawn(command.file, command.args, {
      detached: true,
      env: command.env,
      // Its stdin stays open, so that the child notices when the launcher is gone. Node ends a process that cannot write to a
      // file, as on a full disk, so its output goes through the launcher.
      stdio: 'pipe',
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => command.log.append(text));
    this.#closed = new Promise((resolve) => this.#child.once('close', resolve));
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
    await this.#closed;
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
