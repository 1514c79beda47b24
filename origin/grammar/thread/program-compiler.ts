import { ApiError } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';
import { CompilerThread } from './compiler-thread.ts';

export interface ProgramCompilerOptions {
  /** Milliseconds a compilation may take; default 2,000. */
  readonly timeLimitMs?: number;
  /** Compilations at a time; default 2, so that one that runs to its limit does not hold up all others. */
  readonly threads?: number;
  /** Compilations of one tenant that may wait for a thread; default 64. Beyond it the answer is 503. */
  readonly maxWaiting?: number;
  /** Milliseconds that a compilation may wait for a thread; default 1,000. After that the answer is 503. */
  readonly patienceMs?: number;
  /** The threads' entry. */
  readonly entry?: URL;
}

interface Job {
  readonly wire: string;
  readonly tenantId: string;
  readonly resolve: (program: Program) => void;
  readonly reject: (error: unknown) => void;
  readonly patience: NodeJS.Timeout;
}

/** Wait before a thread is started in the place of one that could not start. */
const RESTART_MS = 1000;

/**
 * Compiles constraints in threads of its own. A tenant has at most one compilation under way, and tenants take turns, so
 * that whoever sends grammars that take long waits for them alone.
 */
export class ProgramCompiler {
  readonly #startThread: (onEnd: (wasReady: boolean) => void) => CompilerThread;
  readonly #maxWaiting: number;
  readonly #patienceMs: number;
  readonly #threads = new Set<CompilerThread>();
  readonly #compiling = new Set<string>();
  #waiting: Job[] = [];
  #closed = false;

  constructor(options: ProgramCompilerOptions = {}) {
    const { timeLimitMs = 2000, threads = 2, maxWaiting = 64, patienceMs = 1000 } = options;
    const { entry = new URL('./compile-thread.ts', import.meta.url) } = options;
    this.#startThread = (onEnd) => new CompilerThread(entry, timeLimitMs, onEnd);
    this.#maxWaiting = maxWaiting;
    this.#patienceMs = patienceMs;
    for (let i = 0; i < threads; i++) this.#addThread();
  }

  /**
   * @param wire a WireConstraint as JSON
   * @throws ApiError naming the fault when it cannot be compiled, 503 when too much is waiting
   */
  compile(wire: string, tenantId: string): Promise<Program> {
    if (this.#closed) return Promise.reject(closedError());
    const waiting = this.#waiting.filter((job) => job.tenantId === tenantId).length;
    if (waiting >= this.#maxWaiting) return Promise.reject(crowdedError());
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => {
        this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
        reject(crowdedError());
      }, this.#patienceMs);
      const job: Job = { wire, tenantId, resolve, reject, patience };
      this.#waiting.push(job);
      this.#assign();
    });
  }

  /** Ends the threads; compilations under way and later ones fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { patience, reject } of this.#waiting.splice(0)) {
      clearTimeout(patience);
      reject(closedError());
    }
    await Promise.all([...this.#threads].map((thread) => thread.terminate(closedError())));
  }

  #addThread(): void {
    if (this.#closed) return;
    const thread = this.#startThread((wasReady) => {
      this.#threads.delete(thread);
      if (wasReady) this.#addThread();
      else setTimeout(() => this.#addThread(), RESTART_MS).unref();
    });
    this.#threads.add(thread);
    this.#assign();
  }

  #assign(): void {
    for (const thread of this.#threads) {
      const job = thread.idle ? this.#next() : null;
      if (job !== null) void this.#run(thread, job);
    }
  }

  async #run(thread: CompilerThread, { wire, tenantId, resolve, reject, patience }: Job): Promise<void> {
    clearTimeout(patience);
    this.#compiling.add(tenantId);
    await thread.run(wire).then(resolve, reject);
    this.#compiling.delete(tenantId);
    this.#assign();
  }

  /** Takes the first job of a tenant that has none under way; the tenant's other jobs go to the end of the queue. */
  #next(): Job | null {
    const job = this.#waiting.find(({ tenantId }) => !this.#compiling.has(tenantId));
    if (job === undefined) return null;
    const isOther = ({ tenantId }: Job): boolean => tenantId !== job.tenantId;
    const own = this.#waiting.filter((waiting) => waiting !== job && !isOther(waiting));
    this.#waiting = [...this.#waiting.filter(isOther), ...own];
    return job;
  }
}

function crowdedError(): ApiError {
  return new ApiError(
    'server_is_overloaded',
    'Too many grammars are waiting to be compiled. Please retry your request.',
    { headers: { 'retry-after': '2' } },
  );
}

function closedError(): ApiError {
  return new ApiError('server_is_overloaded', 'The server is shutting down.');
}
