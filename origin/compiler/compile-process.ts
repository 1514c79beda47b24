import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { Program } from '@continuo/grammar/program/program.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { processLife, SupervisedChild } from '../process/supervised-child.ts';
import {
  busyError,
  type CompileJob,
  type CompileOutcome,
  type CompileResult,
  processDiedError,
  programOf,
  shutdownError,
} from './compile-messages.ts';
import { startIsolatedProcess } from './isolated-process.ts';

const STARTUP_LIMIT_MS = 20_000;
/** Delay before replacing a process that failed to start. */
const RESTART_MS = 1000;
/** Node reserves about 600 MiB of data, so these limits leave typed arrays about as much as the heap. */
const LIMITS = { heapMiB: 512, dataMiB: 1536, stackKiB: 4000 };
/** Exit signals of a Node process that runs out of memory. */
const OUT_OF_MEMORY: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL'];
/**
 * Added to the "nice" value. If all cores are busy, a compilation gets about a tenth of an engine thread's
 * time. With less, ordinary grammars would take seconds.
 */
const NICE_INCREMENT = 10;
const MAX_NICE = 19;

export interface TimeLimits {
  /**
   * Maximum CPU time of a compilation in milliseconds; default 8,000. Counted work ends a compilation after 1
   * to 4 s, so that equal constraints have the same end on every machine. The limit is for work that is not
   * counted.
   */
  readonly timeLimitMs: number;
  /** Maximum milliseconds of a compilation on busy cores; default a quarter more than its CPU time. */
  readonly maxMs: number;
}

/** The job in a process, at most one. */
const JOB = 0;

/** A compile process and its successors. It takes one job at a time, within time and memory limits. */
export class CompileProcess {
  readonly #process: SupervisedChild<CompileJob, CompileResult, CompileOutcome>;
  readonly #limits: TimeLimits;
  #timer: NodeJS.Timeout | undefined;

  /** @param onStart called when a process has been started, and takes a job */
  constructor(entry: URL, limits: TimeLimits, onStart: () => void) {
    this.#limits = limits;
    this.#process = new SupervisedChild({
      spawn: () => processLife(startIsolatedProcess(entry, LIMITS)),
      onStart,
      onReport: (result) => this.#take(result),
      deathError: ({ signal }) =>
        OUT_OF_MEMORY.includes(signal) ? refusal('needs too much memory to compile') : processDiedError(),
      onLost: () => clearTimeout(this.#timer),
      onDeath: ({ wasReady }) => (wasReady ? 0 : RESTART_MS),
      background: true,
      graceMs: 0,
    });
    this.#process.start();
  }

  get idle(): boolean {
    return this.#process.state !== 'down' && !this.#process.awaits(JOB);
  }

  /** @throws ApiError naming the error in the constraint */
  async run(wire: string): Promise<Program> {
    const outcome = this.#process.request(JOB, { wire, maxMs: this.#limits.maxMs });
    if (this.#process.state === 'ready') this.#limitTime();
    else this.#timer = setTimeout(() => this.#process.kill(busyError()), STARTUP_LIMIT_MS);
    return programOf(await outcome);
  }

  /** Ends the process. A running job fails. */
  close(): Promise<void> {
    return this.#process.close(shutdownError());
  }

  /** Limits the time of the running job. Its process is ready. */
  #limitTime(): void {
    clearTimeout(this.#timer);
    const { timeLimitMs, maxMs } = this.#limits;
    const pid = this.#process.pid!;
    const end = cpuMsOf(pid) + timeLimitMs;
    const latest = performance.now() + maxMs;
    const check = (): void => {
      const left = end - cpuMsOf(pid);
      if (left <= 0) this.#process.kill(refusal(`takes more than ${timeLimitMs / 1000} s to compile`));
      else if (performance.now() >= latest) this.#process.kill(busyError());
      else this.#timer = setTimeout(check, Math.min(left, latest - performance.now()));
    };
    check();
  }

  #take(result: CompileResult): void {
    if (!('ready' in result)) {
      clearTimeout(this.#timer);
      this.#process.settle(JOB, result);
      return;
    }
    this.#process.noteReady();
    lowerPriority(this.#process.pid!);
    if (this.#process.awaits(JOB)) this.#limitTime();
  }
}

/**
 * Returns the milliseconds of CPU time that a process has used; where the system does not tell it, all time.
 */
function cpuMsOf(pid: number): number {
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
 * Call after startup, because startup at low priority takes seconds on busy cores. On Linux a priority
 * belongs to a thread, and later threads inherit it.
 */
function lowerPriority(pid: number): void {
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
