import { ApiError } from '../../../shared/errors.ts';
import type { Program } from '../program/program.ts';
import { shutdownError } from './compile-messages.ts';
import { CompileProcess } from './compile-process.ts';

export interface CompilePoolOptions {
  /** Milliseconds a compilation may take; default 2,000. */
  readonly timeLimitMs?: number;
  /** Compilations at a time; default 2, so that one that runs to its limit does not hold up all others. */
  readonly processes?: number;
  /** Compilations of one tenant that may wait for a process; default 64. Beyond it the response is 503. */
  readonly maxWaiting?: number;
  /** Milliseconds that a compilation may wait for a process; default 1,000. After that the response is 503. */
  readonly maxWaitMs?: number;
  /** The processes' entry. */
  readonly entry?: URL;
}

interface Job {
  readonly wire: string;
  readonly tenantId: string;
  readonly resolve: (program: Program) => void;
  readonly reject: (error: unknown) => void;
  readonly expiry: NodeJS.Timeout;
}

/** Wait before a process is started in the place of one that could not start. */
const RESTART_MS = 1000;

/**
 * Compiles constraints in processes of their own. A tenant has at most one compilation under way, and tenants take turns, so
 * that whoever sends grammars that take long waits for them alone.
 */
export class CompilePool {
  readonly #startProcess: (onEnd: (wasReady: boolean) => void) => CompileProcess;
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #processes = new Set<CompileProcess>();
  readonly #compiling = new Set<string>();
  #waiting: Job[] = [];
  #closed = false;

  constructor(options: CompilePoolOptions = {}) {
    const { timeLimitMs = 2000, processes = 2, maxWaiting = 64, maxWaitMs = 1000 } = options;
    const { entry = new URL('./compile-process-entry.ts', import.meta.url) } = options;
    this.#startProcess = (onEnd) => new CompileProcess(entry, timeLimitMs, onEnd);
    this.#maxWaiting = maxWaiting;
    this.#maxWaitMs = maxWaitMs;
    for (let i = 0; i < processes; i++) this.#addProcess();
  }

  /**
   * @param wire a WireConstraint as JSON
   * @throws ApiError naming the fault when it cannot be compiled, 503 when too much is waiting
   */
  compile(wire: string, tenantId: string): Promise<Program> {
    if (this.#closed) return Promise.reject(shutdownError());
    const waiting = this.#waiting.filter((job) => job.tenantId === tenantId).length;
    if (waiting >= this.#maxWaiting) return Promise.reject(queueFullError());
    return new Promise((resolve, reject) => {
      const expiry = setTimeout(() => {
        this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
        reject(queueFullError());
      }, this.#maxWaitMs);
      const job: Job = { wire, tenantId, resolve, reject, expiry };
      this.#waiting.push(job);
      this.#assign();
    });
  }

  /** Ends the processes; compilations under way and later ones fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { expiry, reject } of this.#waiting.splice(0)) {
      clearTimeout(expiry);
      reject(shutdownError());
    }
    await Promise.all([...this.#processes].map((process) => process.terminate(shutdownError())));
  }

  #addProcess(): void {
    if (this.#closed) return;
    const process = this.#startProcess((wasReady) => {
      this.#processes.delete(process);
      if (wasReady) this.#addProcess();
      else setTimeout(() => this.#addProcess(), RESTART_MS).unref();
    });
    this.#processes.add(process);
    this.#assign();
  }

  #assign(): void {
    for (const process of this.#processes) {
      const job = process.idle ? this.#next() : null;
      if (job !== null) void this.#run(process, job);
    }
  }

  async #run(process: CompileProcess, { wire, tenantId, resolve, reject, expiry }: Job): Promise<void> {
    clearTimeout(expiry);
    this.#compiling.add(tenantId);
    await process.run(wire).then(resolve, reject);
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

function queueFullError(): ApiError {
  return new ApiError(
    'server_is_overloaded',
    'Too many grammars are waiting to be compiled. Please retry your request.',
  );
}
