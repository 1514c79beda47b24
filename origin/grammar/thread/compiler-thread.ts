import { Worker } from 'node:worker_threads';
import { ApiError } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';
import type { CompileJob, CompileResult } from './compile-messages.ts';

const STARTUP_LIMIT_MS = 20_000;
/** A compilation watches its own time and stops here; only one that does not is ended with its thread. */
const OWN_LIMIT = 0.9;
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 512, stackSizeMb: 4 };

interface Running {
  readonly resolve: (program: Program) => void;
  readonly reject: (error: unknown) => void;
  timer: NodeJS.Timeout;
}

/** One compile thread as its owner sees it: takes one job at a time, within limits of time and memory. */
export class CompilerThread {
  readonly #worker: Worker;
  readonly #timeLimitMs: number;
  readonly #onEnd: (wasReady: boolean) => void;
  #ready = false;
  #ended = false;
  #running: Running | null = null;

  /** @param onEnd called once, when the thread takes no more jobs; told whether it ever had started */
  constructor(entry: URL, timeLimitMs: number, onEnd: (wasReady: boolean) => void) {
    this.#timeLimitMs = timeLimitMs;
    this.#onEnd = onEnd;
    this.#worker = new Worker(entry, { resourceLimits: RESOURCE_LIMITS });
    // An idle thread does not keep the process alive.
    this.#worker.unref();
    this.#worker.on('message', (result: CompileResult) => this.#take(result));
    this.#worker.on('error', (error: Error & { code?: string }) => {
      const isTooLarge = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#end(isTooLarge ? refusal('needs too much memory to compile') : error);
    });
    this.#worker.on('exit', () => this.#end(new Error('The compile thread ended')));
  }

  get idle(): boolean {
    return this.#running === null && !this.#ended;
  }

  /** @throws ApiError naming the fault when the constraint cannot be compiled */
  run(wire: string): Promise<Program> {
    return new Promise((resolve, reject) => {
      // The time of a job counts from when the thread has started.
      const timer = this.#timer(this.#ready ? this.#timeLimitMs : STARTUP_LIMIT_MS);
      this.#running = { resolve, reject, timer };
      this.#worker.ref();
      const limitMs = OWN_LIMIT * this.#timeLimitMs;
      this.#worker.postMessage({ wire, limitMs } satisfies CompileJob);
    });
  }

  /** Ends the thread; a job under way fails with the error. */
  async terminate(error: unknown): Promise<void> {
    this.#end(error);
    await this.#worker.terminate();
  }

  #timer(limitMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      void this.terminate(refusal(`takes more than ${this.#timeLimitMs / 1000} s to compile`));
    }, limitMs);
  }

  #take(result: CompileResult): void {
    if ('ready' in result) {
      this.#ready = true;
      if (this.#running === null) return;
      clearTimeout(this.#running.timer);
      this.#running.timer = this.#timer(this.#timeLimitMs);
      return;
    }
    const running = this.#leave();
    if ('program' in result) running?.resolve(result.program);
    else
      running?.reject(new ApiError(result.error.code, result.error.message, { param: result.error.param }));
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
    this.#worker.unref();
    return running;
  }
}

function refusal(what: string): ApiError {
  return new ApiError('invalid_grammar', `The grammar ${what}; please simplify it.`, { param: 'grammar' });
}
