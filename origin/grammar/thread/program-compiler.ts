import { Worker } from 'node:worker_threads';
import { ApiError } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';
import type { CompileJob, CompileResult } from './compile-messages.ts';

export interface ProgramCompilerOptions {
  /** Milliseconds a compilation may take before its thread is ended; default 2,000. */
  readonly timeLimitMs?: number;
  /** Compilations at a time; default 2, so that one that runs to its limit does not hold up all others. */
  readonly threads?: number;
  /** Compilations that may wait for a thread; default 64. Beyond it the answer is 503. */
  readonly maxWaiting?: number;
}

interface Job {
  readonly wire: string;
  readonly resolve: (program: Program) => void;
  readonly reject: (error: unknown) => void;
}

interface Seat {
  readonly worker: Worker;
  /** The thread has started; the time of a job counts from then. */
  ready: boolean;
  current: { readonly id: number; readonly job: Job; timer: NodeJS.Timeout } | null;
}

const STARTUP_LIMIT_MS = 20_000;

const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 512, stackSizeMb: 4 };

/** Compiles constraints in threads of its own, within limits of time and memory. Threads start when first needed. */
export class ProgramCompiler {
  readonly #timeLimitMs: number;
  readonly #threads: number;
  readonly #maxWaiting: number;
  readonly #waiting: Job[] = [];
  readonly #seats = new Set<Seat>();
  #nextId = 0;
  #closed = false;

  constructor({ timeLimitMs = 2000, threads = 2, maxWaiting = 64 }: ProgramCompilerOptions = {}) {
    this.#timeLimitMs = timeLimitMs;
    this.#threads = threads;
    this.#maxWaiting = maxWaiting;
  }

  /** `wire`: a WireConstraint as JSON. ApiError naming the fault when it cannot be compiled. */
  compile(wire: string): Promise<Program> {
    if (this.#waiting.length >= this.#maxWaiting) {
      const message = 'Too many grammars are waiting to be compiled. Please retry your request.';
      return Promise.reject(
        new ApiError('server_is_overloaded', message, { headers: { 'retry-after': '2' } }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ wire, resolve, reject });
      this.#assign();
    });
  }

  /** Ends the threads; compilations under way and later ones fail. */
  async close(): Promise<void> {
    this.#closed = true;
    const seats = [...this.#seats];
    for (const seat of seats) this.#leave(seat, closedError());
    this.#assign();
    await Promise.all(seats.map((seat) => seat.worker.terminate()));
  }

  #assign(): void {
    if (this.#closed) {
      for (const job of this.#waiting.splice(0)) job.reject(closedError());
      return;
    }
    while (this.#waiting.length > 0) {
      const idle = [...this.#seats].find((seat) => seat.current === null);
      if (!idle && this.#seats.size >= this.#threads) return;
      this.#start(idle ?? this.#open(), this.#waiting.shift()!);
    }
  }

  #open(): Seat {
    const worker = new Worker(new URL('./compile-thread.ts', import.meta.url), {
      resourceLimits: RESOURCE_LIMITS,
    });
    const seat: Seat = { worker, ready: false, current: null };
    // An idle thread does not keep the process alive.
    worker.unref();
    worker.on('message', (result: CompileResult) => this.#finish(seat, result));
    worker.on('error', (error: Error & { code?: string }) => {
      const isTooLarge = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#leave(seat, isTooLarge ? refusal('needs too much memory to compile') : error);
    });
    worker.on('exit', () => this.#leave(seat, new Error('The compile thread ended')));
    this.#seats.add(seat);
    return seat;
  }

  #start(seat: Seat, job: Job): void {
    const id = this.#nextId++;
    const timer = this.#timer(seat, seat.ready ? this.#timeLimitMs : STARTUP_LIMIT_MS);
    seat.current = { id, job, timer };
    seat.worker.ref();
    seat.worker.postMessage({ id, wire: job.wire } satisfies CompileJob);
  }

  #timer(seat: Seat, limitMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#leave(seat, refusal(`takes more than ${this.#timeLimitMs / 1000} s to compile`));
      void seat.worker.terminate();
    }, limitMs);
  }

  #finish(seat: Seat, result: CompileResult): void {
    if ('ready' in result) {
      seat.ready = true;
      if (seat.current === null) return;
      clearTimeout(seat.current.timer);
      seat.current.timer = this.#timer(seat, this.#timeLimitMs);
      return;
    }
    if (seat.current?.id !== result.id) return;
    const { job, timer } = seat.current;
    clearTimeout(timer);
    seat.current = null;
    seat.worker.unref();
    if ('program' in result) job.resolve(result.program);
    else job.reject(new ApiError(result.error.code, result.error.message, { param: result.error.param }));
    this.#assign();
  }

  /** Gives a thread up; its job fails. */
  #leave(seat: Seat, error: unknown): void {
    if (!this.#seats.delete(seat)) return;
    if (seat.current) {
      clearTimeout(seat.current.timer);
      seat.current.job.reject(error);
      seat.current = null;
    }
    this.#assign();
  }
}

function refusal(what: string): ApiError {
  return new ApiError('invalid_grammar', `The grammar ${what}; please simplify it.`, { param: 'grammar' });
}

function closedError(): ApiError {
  return new ApiError('server_is_overloaded', 'The server is shutting down.');
}
