import type { Program } from '@continuo/grammar/program/program.ts';
import { VirtualTimes } from '@continuo/shared/virtual-times.ts';
import { busyError, shutdownError } from './compile-messages.ts';
import { CompileProcess, type TimeLimits } from './compile-process.ts';

interface CompilePoolOptions extends Partial<TimeLimits> {
  /** Number of processes; default 2, so that one slow grammar does not block all others. */
  readonly processes?: number;
  /** Maximum waiting compilations per tenant; default 64. More are rejected with 503. */
  readonly maxWaiting?: number;
  /**
   * Maximum wait in milliseconds for a free process, and for the tenant's own compilation before it; default
   * 1,000. Then the job fails with 503.
   */
  readonly maxWaitMs?: number;
  /** The module that each process runs. */
  readonly entry?: URL;
}

interface Job {
  readonly wire: string;
  readonly tenantId: string;
  readonly resolve: (program: Program) => void;
  readonly reject: (error: unknown) => void;
  readonly expiry: NodeJS.Timeout;
}

/**
 * Compiles constraints in separate processes. Tenants take turns and have at most one running compilation
 * each, so that slow grammars delay only their own tenant.
 */
export class CompilePool {
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #processes: CompileProcess[] = [];
  readonly #compiling = new Set<string>();
  #waiting: Job[] = [];
  /** In compilations. */
  readonly #times = new VirtualTimes();
  #closed = false;

  constructor(options: CompilePoolOptions = {}) {
    const { timeLimitMs = 8000, processes = 2, maxWaiting = 64, maxWaitMs = 1000 } = options;
    const { maxMs = 1.25 * timeLimitMs, entry = new URL('./compile-process-entry.ts', import.meta.url) } =
      options;
    this.#maxWaiting = maxWaiting;
    this.#maxWaitMs = maxWaitMs;
    const limits = { timeLimitMs, maxMs };
    for (let i = 0; i < processes; i++)
      this.#processes.push(new CompileProcess(entry, limits, () => this.#assign()));
  }

  /**
   * @param wire a WireConstraint as JSON
   * @throws ApiError naming the error in the constraint; 503 if too many compilations wait
   */
  compile(wire: string, tenantId: string): Promise<Program> {
    if (this.#closed) return Promise.reject(shutdownError());
    const waiting = this.#waiting.filter((job) => job.tenantId === tenantId).length;
    if (waiting >= this.#maxWaiting) return Promise.reject(busyError());
    return new Promise((resolve, reject) => {
      const expiry = setTimeout(() => {
        this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
        reject(busyError());
      }, this.#maxWaitMs);
      const job: Job = { wire, tenantId, resolve, reject, expiry };
      this.#waiting.push(job);
      this.#assign();
    });
  }

  /** Ends the processes. Running and later compilations fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { expiry, reject } of this.#waiting.splice(0)) {
      clearTimeout(expiry);
      reject(shutdownError());
    }
    await Promise.all(this.#processes.map((process) => process.close()));
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

  /** Takes the first job of the tenant that comes next, of those without a running job. */
  #next(): Job | null {
    const due = this.#waiting.filter(({ tenantId }) => !this.#compiling.has(tenantId));
    const tenants = new Set(due.map(({ tenantId }) => tenantId));
    const next = this.#times.first(tenants);
    const job = due.find(({ tenantId }) => tenantId === next);
    if (job === undefined) return null;
    this.#waiting = this.#waiting.filter((waiting) => waiting !== job);
    this.#times.serve(job.tenantId, 1);
    this.#times.forget(tenants);
    return job;
  }
}
