import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { ApiError } from '@continuo/shared/errors.ts';
import type { Program } from '../program/program.ts';
import {
  busyError,
  type CompileJob,
  type CompileResult,
  type PendingCompile,
  processDiedError,
  settlePending,
} from './compile-messages.ts';
import { startIsolatedProcess } from './isolated-process.ts';

const STARTUP_LIMIT_MS = 20_000;
/** Node reserves about 600 MiB of data, so these limits leave typed arrays about as much as the heap. */
const LIMITS = { heapMiB: 512, dataMiB: 1536, stackKiB: 4000 };
/** Exit signals of a Node process that runs out of memory. */
const OUT_OF_MEMORY: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL'];
/**
 * Added to the "nice" value. If all cores are busy, a compilation gets about a tenth of an engine thread's time. With
 * less, ordinary grammars would take seconds.
 */
const NICE_INCREMENT = 10;
const MAX_NICE = 19;

export interface TimeLimits {
  /**
   * Maximum CPU time of a compilation in milliseconds; default 8,000. Counted work ends a compilation
   * after 1 to 4 s, so that equal constraints have the same end on every machine. The limit is for work that is not counted.
   */
  readonly timeLimitMs: number;
  /** Maximum time of a compilation on busy cores in milliseconds; default a quarter more than its CPU time. */
  readonly maxMs: number;
}

interface Running extends PendingCompile {
  readonly wire: string;
  timer: NodeJS.Timeout;
}

/** The owner's view of one compile process. It takes one job at a time, within time and memory limits. */
export class CompileProcess {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #limits: TimeLimits;
  readonly #onEnd: (wasReady: boolean) => void;
  #ready = false;
  #ended = false;
  #running: Running | null = null;

  /** @param onEnd called once when the process takes no more jobs; `wasReady` is false if it never started */
  constructor(entry: URL, limits: TimeLimits, onEnd: (wasReady: boolean) => void) {
    this.#limits = limits;
    this.#onEnd = onEnd;
    this.#process = startIsolatedProcess(entry, LIMITS);
    this.#process.on('message', (result: CompileResult) => this.#take(result));
    this.#exited = new Promise<void>((resolve) => {
      this.#process.once('exit', (_code, signal) => {
        const isTooLarge = OUT_OF_MEMORY.includes(signal);
        this.#end(isTooLarge ? refusal('needs too much memory to compile') : processDiedError());
        resolve();
      });
      this.#process.on('error', () => {
        this.#end(processDiedError());
        if (this.#process.pid === undefined) resolve();
      });
    });
  }

  get idle(): boolean {
    return this.#running === null && !this.#ended;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** @throws ApiError naming the error in the constraint */
  run(wire: string): Promise<Program> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => void this.terminate(busyError()), STARTUP_LIMIT_MS);
      this.#running = { wire, resolve, reject, timer };
      if (this.#ready) this.#send(this.#running);
    });
  }

  /** Ends the process. A running job fails with the error. */
  async terminate(error: unknown): Promise<void> {
    this.#process.kill('SIGKILL');
    this.#end(error);
    await this.#exited;
  }

  /** The time limit of a job starts when the process is ready. */
  #send(running: Running): void {
    clearTimeout(running.timer);
    const { timeLimitMs, maxMs } = this.#limits;
    const end = cpuMsOf(this.#process) + timeLimitMs;
    const latest = performance.now() + maxMs;
    const check = (): void => {
      const left = end - cpuMsOf(this.#process);
      if (left <= 0) void this.terminate(refusal(`takes more than ${timeLimitMs / 1000} s to compile`));
      else if (performance.now() >= latest) void this.terminate(busyError());
      else running.timer = setTimeout(check, Math.min(left, latest - performance.now()));
    };
    check();
    this.#process.send({ wire: running.wire, maxMs } satisfies CompileJob);
  }

  #take(result: CompileResult): void {
    if (this.#ended) return;
    if ('ready' in result) {
      this.#ready = true;
      lowerPriority(this.#process);
      if (this.#running !== null) this.#send(this.#running);
      return;
    }
    const running = this.#leave();
    if (running !== null) settlePending(running, result);
  }

  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#leave()?.reject(error);
    this.#onEnd(this.#ready);
  }

  #leave(): Running | null {
    const running = this.#running;
    this.#running = null;
    if (running !== null) clearTimeout(running.timer);
    return running;
  }
}

/** Returns the CPU time that a process has used, in milliseconds. Where the system does not tell it, all time counts. */
function cpuMsOf({ pid }: ChildProcess): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // "pid (name) state …": user and system time are fields 14 and 15, in ticks of 10 ms.
    const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12);
    return 10 * (Number(user) + Number(system));
  } catch {
    return performance.now();
  }
}

/**
 * Call after startup, because startup at low priority takes seconds on busy cores. On Linux a priority belongs to a
 * thread, and later threads inherit it.
 */
function lowerPriority({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  const niceness = Math.min(MAX_NICE, getPriority() + NICE_INCREMENT);
  for (const thread of threadsOf(pid)) {
    try {
      setPriority(thread, niceness);
    } catch {
      // The thread has ended, or the system has no priorities.
    }
  }
}

function threadsOf(pid: number): number[] {
  if (process.platform !== 'linux') return [pid];
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    // The process has ended; its owner receives the exit event.
    return [];
  }
}

function refusal(what: string): ApiError {
  return new ApiError('invalid_grammar', `The grammar ${what}. Simplify it.`, { param: 'grammar' });
}
