import type { Program } from '@continuo/grammar/program/program.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { VirtualTimes } from '@continuo/shared/virtual-times.ts';
import { processLife, SupervisedChild } from '../process/supervised-child.ts';
import {
  busyError,
  type CompileJob,
  type CompileOutcome,
  type CompileResult,
  processDiedError,
  programOf,
  shutdownError,
} from './compile-jobs.ts';
import { cpuMsOf, lowerPriority, startIsolatedProcess } from './isolated-process.ts';

interface TimeLimits {
  /**
   * Maximum CPU time of a compilation in milliseconds; default 8,000. Counted work ends a compilation after 1
   * to 4 s, so that equal constraints have the same end on every machine. The limit is for work that is not
   * counted.
   */
  readonly timeLimitMs: number;
  /** Maximum milliseconds of a compilation on busy cores; default a quarter more than its CPU time. */
  readonly maxMs: number;
}

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

const STARTUP_LIMIT_MS = 20_000;
/** Delay before replacing a process that failed to start. */
const RESTART_MS = 1000;
/** Node reserves about 600 MiB of data, so these limits leave typed arrays about as much as the heap. */
const LIMITS = { heapMiB: 512, dataMiB: 1536, stackKiB: 4000 };
/** Exit signals of a Node process that runs out of memory. */
const OUT_OF_MEMORY: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL'];

/** The job in a process, at most one. */
const JOB = 0;

/** A compile process and its successors. It takes one job at a time, within time and memory limits. */
class CompileProcess {
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

function refusal(what: string): ApiError {
  return new ApiError('invalid_grammar', `The grammar ${what}. Simplify it.`, { param: 'grammar' });
}
