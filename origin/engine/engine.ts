import { errorMessage } from '@continuo/shared/error-details.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { GrammarWork } from '../grammar/grammar-work.ts';
import {
  faultKind,
  MEMORY_ADVICE,
  type ModelRunner,
  type ModelShape,
  RunTerminated,
  RuntimeFault,
} from '../model/model-runner.ts';
import type { SimdKernel } from '../sampling/kernel/simd-kernel.ts';
import type { SamplerPool } from '../sampling/pool/sampler-pool.ts';
import { SamplerWorkspace } from '../sampling/workspace.ts';
import type { TokenBytes } from '../tokenizer/token-bytes.ts';
import { violations } from './invariants.ts';
import type { DiskTier } from './kv/disk/disk-tier.ts';
import type { KvCopy } from './kv/pending-copies.ts';
import { prefixStoreRoom } from './kv/prefix-memory.ts';
import { PrefixStore } from './kv/prefix-store.ts';
import { slotTrimmer } from './kv/slot-trimmer.ts';
import { timedKvBytes } from './kv/timed-kv-bytes.ts';
import type { EngineStatus, StepReport, Submission } from './messages.ts';
import { type ModelRun, ModelRuns } from './model-runs.ts';
import { type OpenRequest, prefixNamespace, storablePositions } from './open-request.ts';
import { Requests, type RequestsOptions } from './requests.ts';
import { RunningSet } from './running-set.ts';

/** The engine cannot continue: its state is broken, the device is lost, or the model keeps failing. */
export class EngineFailure extends Error {
  override readonly name = 'EngineFailure';
}

export interface EngineOptions
  extends Omit<RequestsOptions, 'running' | 'context' | 'loadPrefixes' | 'charge' | 'opened'> {
  readonly runner: ModelRunner;
  readonly tokenBytes: TokenBytes;
  /** Requests that may wait for a slot. */
  readonly maxWaiting: number;
  /** Reads the runner's logits in place if they lie in its memory. */
  readonly kernel: SimdKernel;
  /** Draws the tokens of a step on several threads. Default: each sequence samples by itself. */
  readonly pool?: SamplerPool | null;
  /** Memory of the prefix store; default 0 = none. */
  readonly prefixStoreBytes?: number | undefined;
  /** The second tier of the prefix store; null or absent = none. */
  readonly disk?: DiskTier | null;
  /** The part of a tenant's time that its prompts get while it also has streams; default: one half. */
  readonly promptShare?: number | undefined;
}

/** Failed runs in a row that the engine tolerates. */
const MAX_FAILURES = 2;

/**
 * Runs the model for all requests, step by step. Sees the model only as rows of tokens in and logits out. `submit` and
 * `abort` may be called at any time, also while a step waits for the model.
 */
export class Engine {
  /** Trims a slot if it is time. Returns whether more may be left. */
  readonly trim: () => boolean;
  readonly #runner: ModelRunner;
  readonly #now: () => number;
  readonly #report: EngineOptions['report'];
  readonly #running: RunningSet;
  readonly #requests: Requests;
  readonly #runs: ModelRuns;
  readonly #grammarWork: GrammarWork;
  readonly #store: PrefixStore | null;
  readonly #disk: DiskTier | null;
  readonly #kv: ReturnType<typeof timedKvBytes>;
  /** Failed runs since the last successful one. */
  #failures = 0;
  /** The time of the step before this has been charged. */
  #chargedUntil = 0;

  constructor(options: EngineOptions) {
    const { runner, tokenBytes, now, maxWaiting, pool = null } = options;
    const { shape } = runner;
    this.#kv = timedKvBytes(runner.kvBytes, now);
    this.#disk = options.disk ?? null;
    this.#store = this.#newStore(shape, options.prefixStoreBytes ?? 0);
    this.#runner = runner;
    this.#now = now;
    this.#report = options.report;
    this.#grammarWork = new GrammarWork(options.onWork);
    this.#running = new RunningSet(shape, maxWaiting, this.#store);
    const context = {
      tokenBytes,
      workspace: new SamplerWorkspace(shape.vocabularySize, options.kernel),
      pool,
      grammarWork: this.#grammarWork,
      sparse: runner.sparse ?? null,
    };
    this.trim = slotTrimmer(this.#running.kv, this.#kv.kvBytes, now);
    this.#requests = new Requests({
      ...options,
      charge: (account, ms) => this.#charge(account, ms),
      opened: (request) => this.#runs.stopFor(request),
      running: this.#running,
      context,
      loadPrefixes: (submission, signal) => this.#loadPrefixes(submission, signal),
    });
    this.#runs = new ModelRuns({ ...options, pool, running: this.#running, requests: this.#requests });
  }

  /** True if there is nothing to compute until the next submission. */
  get idle(): boolean {
    return this.#running.requests.size === 0 && !this.#grammarWork.awaited;
  }

  /** True while a request is being prepared or prefixes are being written, which go on when the event loop turns. */
  get awaitsPreparation(): boolean {
    return this.#requests.preparing > 0 || this.#disk?.busy === true;
  }

  /** Resolves when all prefixes are written to the disk; null if they are. */
  get writing(): Promise<void> | null {
    return this.#disk?.busy ? this.#disk.settled() : null;
  }

  get status(): EngineStatus {
    return {
      running: this.#running.running,
      waiting: this.#running.waiting + this.#requests.preparing,
      suspended: this.#running.suspended.size,
      suspensions: this.#running.suspended.suspensions,
      healthy: this.#failures <= MAX_FAILURES,
      prefixStore: this.#store ? { ...this.#store.status, copySeconds: this.#kv.seconds() } : undefined,
      prefixDisk: this.#disk?.status,
    };
  }

  /** Returns the invariants that are broken between two steps, one line each. */
  violations(): string[] {
    return violations(this.#running);
  }

  /** Reports `admitted` or `refused` before any event of the request. */
  submit(submission: Submission): void {
    this.#requests.submit(submission);
  }

  /** Removes a request at once; it sends no more events. */
  abort(requestId: string): void {
    this.#requests.abort(requestId);
  }

  /**
   * Schedules the runs of one step, runs the model and takes the results.
   * @throws EngineFailure
   */
  async step(): Promise<void> {
    let startedAt = this.#now();
    this.#chargedUntil = startedAt;
    this.#grammarWork.beginStep();
    this.#requests.expire(startedAt);
    this.trim();
    this.#admit();
    for (const run of this.#runs.schedule()) {
      this.#copy(run.copies);
      const scheduledAt = this.#now();
      const logits = await this.#compute(run);
      if (logits === null) {
        this.#chargeRun(run);
        // The prompt that has stopped it may wait for a slot.
        this.#admit();
        continue;
      }
      const computedAt = this.#now();
      const { copies, ...result } = run.postprocess(logits, computedAt);
      const sampledAt = this.#now();
      this.#copy(copies);
      const endedAt = this.#now();
      const times = {
        modelMs: computedAt - scheduledAt,
        samplingMs: sampledAt - computedAt,
        otherMs: scheduledAt - startedAt + endedAt - sampledAt,
      };
      this.#flush(false, { kind: run.kind, ...times, ...result });
      this.#chargeRun(run);
      startedAt = endedAt;
    }
  }

  /** Charges a run with everything since the last one of its step: scheduling, copies, the model, sampling and its messages. */
  #chargeRun(run: ModelRun): void {
    const now = this.#now();
    run.charge(now - this.#chargedUntil);
    this.#chargedUntil = now;
  }

  /** Charges an account with work outside of runs that has just ended. */
  #charge(account: string, ms: number): void {
    this.#runs.charge(account, ms);
    this.#chargedUntil += ms;
  }

  /** Returns null without memory for a single chunk. */
  #newStore({ prefillChunk, vocabularySize }: ModelShape, budgetBytes: number): PrefixStore | null {
    const shape = { chunk: prefillChunk, kvBytes: this.#kv.kvBytes, vocabularySize, budgetBytes };
    return prefixStoreRoom(shape).chunks > 0 ? new PrefixStore(shape, this.#disk) : null;
  }

  #loadPrefixes(submission: Submission, signal: AbortSignal): Promise<void> | null {
    if (this.#store === null || this.#disk === null || !submission.cachePrompt) return null;
    const namespace = prefixNamespace(submission);
    const prompts = submission.prompts.map((prompt) => ({
      namespace,
      tokens: prompt.tokens,
      limit: storablePositions(submission, prompt),
    }));
    return this.#disk.load(this.#store, prompts, signal);
  }

  /** Gives slots to waiting sequences. If the KV of a suspended one is lost, only its request fails. */
  #admit(): void {
    let movedAt = this.#now();
    this.#running.admit(
      (copies) => this.#copy(copies),
      ({ account }) => {
        const now = this.#now();
        this.#charge(account, now - movedAt);
        movedAt = now;
      },
      (cause, lost) => {
        this.#report({ type: 'fault', message: `a sequence could not be moved: ${describeFault(cause)}` });
        if (lost !== null) this.#requests.fail(lost, modelFailure(), true);
      },
    );
  }

  /** Runs the model. Returns null if the run failed or was aborted. */
  async #compute(run: ModelRun): Promise<Float32Array | null> {
    try {
      const computed = run.start();
      const logits = computed instanceof Float32Array ? computed : await computed;
      this.#failures = 0;
      return logits;
    } catch (thrown) {
      if (!(thrown instanceof RunTerminated)) this.#runFailed(run.requests, thrown);
      return null;
    }
  }

  /**
   * Sends what has not been sent and checks the invariants. Called before the engine waits for a submission.
   * @throws EngineFailure
   */
  settle(): void {
    this.#flush(true);
    this.#check();
  }

  /** Fails only the requests in the run. */
  #runFailed(requests: readonly OpenRequest[], cause: unknown): void {
    this.#failures++;
    const message = describeFault(cause);
    this.#report({ type: 'fault', message });
    for (const request of requests) this.#requests.fail(request, modelFailure(), true);
    this.#flush(true);
    this.#check();
    if (faultKind(cause) === 'device-lost') throw new EngineFailure(message, { cause });
    if (this.#failures > MAX_FAILURES) {
      throw new EngineFailure(`${this.#failures} runs of the model failed in a row: ${message}`, { cause });
    }
  }

  /** After a failed copy the slots no longer hold what KvSlots has recorded. */
  #copy(copies: readonly KvCopy[]): void {
    try {
      for (const { from, to, start, end } of copies) this.#runner.copy(from, to, end, start);
    } catch (cause) {
      throw new EngineFailure(`a KV copy failed: ${describeFault(cause)}`, { cause });
    }
  }

  #check(): void {
    const broken = this.violations();
    if (broken.length > 0) throw new EngineFailure(broken.join('; '));
  }

  #flush(urgent: boolean, report?: StepReport): void {
    this.#requests.flush(this.status, urgent, report);
  }
}

const modelFailure = (): ApiError =>
  new ApiError('upstream_error', 'The model failed while computing this request.');

/** Messages of native code can be very long. */
const MAX_FAULT_LENGTH = 1000;

/** Returns one line: the runtime's code, if there is one, the message, and what the operator can do. */
function describeFault(thrown: unknown): string {
  const code = thrown instanceof RuntimeFault ? `${thrown.code}: ` : '';
  const line = `${code}${errorMessage(thrown).replaceAll(/\s+/g, ' ').trim()}`.slice(0, MAX_FAULT_LENGTH);
  return faultKind(thrown) === 'out-of-memory' ? `${line}; ${MEMORY_ADVICE}` : line;
}
