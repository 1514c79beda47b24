import type { ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { ApiError } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';
import {
  type CompileJob,
  type CompileResult,
  type PendingCompile,
  processDiedError,
  settlePending,
} from './compile-messages.ts';
import { startIsolatedProcess } from './isolated-process.ts';

const STARTUP_LIMIT_MS = 20_000;
/** A compilation watches its own time and stops here; only one that does not is ended with its process. */
const SELF_LIMIT_RATIO = 0.9;
/** The data limit leaves typed arrays about as much as the heap: Node reserves some 600 MiB and uses little of it. */
const LIMITS = { heapMiB: 512, dataMiB: 1536, stackKiB: 4000 };
/** How a Node process ends that gets no more memory. */
const OUT_OF_MEMORY: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL'];
/**
 * Added to the scheduler's "nice" value: where all cores are busy, a compilation gets about a tenth of what a thread of the
 * engine gets. Less would let usual grammars wait for seconds.
 */
const NICE_INCREMENT = 10;
const MAX_NICE = 19;

interface Running extends PendingCompile {
  readonly wire: string;
  timer: NodeJS.Timeout;
}

/** One compile process as its owner sees it: takes one job at a time, within limits of time and memory. */
export class CompileProcess {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #timeLimitMs: number;
  readonly #onEnd: (wasReady: boolean) => void;
  #ready = false;
  #ended = false;
  #running: Running | null = null;

  /** @param onEnd called once, when the process takes no more jobs; told whether it ever had started */
  constructor(entry: URL, timeLimitMs: number, onEnd: (wasReady: boolean) => void) {
    this.#timeLimitMs = timeLimitMs;
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

  /** @throws ApiError naming the fault when the constraint cannot be compiled */
  run(wire: string): Promise<Program> {
    return new Promise((resolve, reject) => {
      const timer = this.#timer(STARTUP_LIMIT_MS);
      this.#running = { wire, resolve, reject, timer };
      if (this.#ready) this.#send(this.#running);
    });
  }

  /** Ends the process; a job under way fails with the error. */
  async terminate(error: unknown): Promise<void> {
    this.#process.kill('SIGKILL');
    this.#end(error);
    await this.#exited;
  }

  /** The time of a job counts from when the process has started. */
  #send(running: Running): void {
    clearTimeout(running.timer);
    running.timer = this.#timer(this.#timeLimitMs);
    this.#process.send({
      wire: running.wire,
      limitMs: SELF_LIMIT_RATIO * this.#timeLimitMs,
    } satisfies CompileJob);
  }

  #timer(limitMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      void this.terminate(refusal(`takes more than ${this.#timeLimitMs / 1000} s to compile`));
    }, limitMs);
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

/**
 * Only once it has started: at a low priority that takes seconds where all cores are busy, and grammars wait for it. On
 * Linux a priority belongs to a thread, and threads that start later inherit it.
 */
function lowerPriority({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  const niceness = Math.min(MAX_NICE, getPriority() + NICE_INCREMENT);
  for (const thread of threadsOf(pid)) {
    try {
      setPriority(thread, niceness);
    } catch {
      // It has ended already, or the system knows no priorities.
    }
  }
}

function threadsOf(pid: number): number[] {
  if (process.platform !== 'linux') return [pid];
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    // It has ended already, which its owner is about to hear.
    return [];
  }
}

function refusal(what: string): ApiError {
  return new ApiError('invalid_grammar', `The grammar ${what}; please simplify it.`, { param: 'grammar' });
}
