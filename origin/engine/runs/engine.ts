import { GrammarWork } from '@continuo/grammar/grammar-work.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { faultKind, MEMORY_ADVICE, RunTerminated, RuntimeFault } from '../../model/model-runner.ts';
import { SamplerWorkspace } from '../../sampling/workspace.ts';
import { KvSlots } from '../kv/kv-slots.ts';
import type { KvCopy } from '../kv/pending-copies.ts';
import { prefixStoreRoom } from '../kv/prefix-memory.ts';
import { PrefixStore } from '../kv/prefix-store.ts';
import type { SecondTier } from '../kv/second-tier.ts';
import { slotTrimmer } from '../kv/slot-trimmer.ts';
import { timedKvBytes } from '../kv/timed-kv-bytes.ts';
import type { EngineStatus, StepReport, Submission } from '../messages.ts';
import { Throughput } from '../scheduling/throughput.ts';
import { TimeShares } from '../scheduling/time-shares.ts';
import type { OpenRequest } from '../sequences/open-request.ts';
import { violations } from '../state/invariants.ts';
import { PrefixCache } from '../state/prefix-cache.ts';
import { RunningSet } from '../state/running-set.ts';
import { Scheduler } from '../state/scheduler.ts';
import { Admission } from './admission.ts';
import type { EngineOptions } from './engine-options.ts';
import type { ModelRun, RunResult } from './model-run.ts';
import { ModelRuns } from './model-runs.ts';
import { Requests } from './requests.ts';
import { RunClock } from './run-clock.ts';

/** The engine cannot continue: its state is broken, the device is lost, or the model keeps failing. */
export class EngineFailure extends Error {
  override readonly name = 'EngineFailure';
}

/** Failed runs in a row that the engine tolerates. */
const MAX_FAILURES = 2;
/** Finished requests that retry-after is computed from. */
const THROUGHPUT_WINDOW = 64;

/**
 * Runs the model for all requests, step by step. Sees the model only as rows of tokens in and logits out.
 * `submit` and `abort` may be called at any time, also while a step waits for the model.
 */
export class Engine {
  /** Trims a slot if it is time. Returns whether more may be left. */
  readonly trim: () => boolean;
  readonly #options: EngineOptions;
  readonly #scheduler: Scheduler;
  readonly #requests: Requests;
  readonly #runs: ModelRuns;
  readonly #clock: RunClock;
  readonly #admission: Admission;
  readonly #grammarWork: GrammarWork;
  readonly #store: PrefixStore | null;
  readonly #disk: SecondTier | null;
  readonly #copySeconds: () => number;
  /** Failed runs since the last successful one. */
  #failures = 0;

  constructor(options: EngineOptions) {
    const { runner, tokenBytes, kernel, now, maxWaiting, pool = null, disk = null } = options;
    const { prefillChunk: chunk, vocabularySize } = runner.shape;
    const { kvBytes, seconds } = timedKvBytes(runner.kvBytes, now);
    const { states = null } = runner;
    const store = newStore(
      {
        chunk,
        kvBytes,
        stateBytes: states?.bytes ?? 0,
        vocabularySize,
        budgetBytes: options.prefixStoreBytes ?? 0,
      },
      disk,
      (fault) =>
        options.report({ type: 'fault', message: `a prefix could not be stored: ${describeFault(fault)}` }),
    );
    const kv = new KvSlots(runner.shape, store !== null, states !== null);
    const prefixes = new PrefixCache(kv, store, disk, chunk, states);
    const running = new RunningSet(kv, prefixes);
    const scheduler = new Scheduler({ kv, store, states, prefixes, running, maxWaiting, chunk });
    const grammarWork = new GrammarWork(options.onWork);
    const context = {
      tokenBytes,
      workspace: new SamplerWorkspace(vocabularySize, kernel),
      pool,
      grammarWork,
      sparse: runner.sparse ?? null,
    };
    const throughput = new Throughput(THROUGHPUT_WINDOW);
    const requests = new Requests(options, { scheduler, running, prefixes, context, throughput });
    const shares = new TimeShares(options.promptShare);
    const clock = new RunClock(shares, now);
    const parts = { scheduler, prefixes, requests, clock, grammarWork, throughput };
    this.trim = slotTrimmer(kv, kvBytes, now);
    this.#options = options;
    this.#scheduler = scheduler;
    this.#requests = requests;
    this.#runs = new ModelRuns(options, { running, prefixes, requests, shares, clock });
    this.#clock = clock;
    this.#admission = new Admission(options, parts);
    this.#grammarWork = grammarWork;
    this.#store = store;
    this.#disk = disk;
    this.#copySeconds = seconds;
  }

  /** True if there is nothing to compute until the next submission. */
  get idle(): boolean {
    return this.#scheduler.requests.size === 0 && !this.#grammarWork.awaited;
  }

  /**
   * True while a request is being prepared or prefixes are being written, which go on when the event loop
   * turns.
   */
  get awaitsPreparation(): boolean {
    return this.#admission.preparing > 0 || this.#disk?.busy === true;
  }

  /** Resolves when all prefixes are written to the disk; null if they are. */
  get writing(): Promise<void> | null {
    return this.#disk?.busy ? this.#disk.settled() : null;
  }

  get status(): EngineStatus {
    const { waiting, ...held } = this.#scheduler.status;
    return {
      ...held,
      waiting: waiting + this.#admission.preparing,
      healthy: this.#failures <= MAX_FAILURES,
      usesGraphs: this.#options.runner.usesGraphs ?? false,
      runsAhead: this.#options.runner.runsAhead ?? false,
      prefixStore: this.#store ? { ...this.#store.status, copySeconds: this.#copySeconds() } : undefined,
      prefixDisk: this.#disk?.status,
    };
  }

  /** Returns the invariants that are broken between two steps, one line each. */
  violations(): string[] {
    return violations(this.#scheduler.state);
  }

  /** Reports `admitted` or `refused` before any event of the request. */
  submit(submission: Submission): void {
    this.#admission.submit(submission);
  }

  /** Removes a request at once; it sends no more events. */
  abort(requestId: string): void {
    this.#admission.abort(requestId);
    this.#requests.abort(requestId);
  }

  /**
   * Schedules the runs of one step, runs the model and takes the results.
   * @throws EngineFailure
   */
  async step(): Promise<void> {
    const { now } = this.#options;
    let startedAt = now();
    this.#clock.begin(startedAt);
    this.#grammarWork.beginStep();
    this.#requests.expire(startedAt);
    this.trim();
    this.#admit();
    for (const run of this.#runs.schedule()) {
      this.#copy(run.copies);
      const scheduledAt = now();
      const logits = await this.#compute(run);
      if (logits === null) {
        run.charge();
        // The prompt that has stopped it may wait for a slot.
        if (this.#clock.wasStopped) this.#admit();
        continue;
      }
      const computedAt = now();
      const processed = this.#postprocess(run, logits, computedAt);
      if (processed === null) {
        run.charge();
        continue;
      }
      const { copies, ...result } = processed;
      const sampledAt = now();
      this.#copy(copies);
      const endedAt = now();
      const times = {
        modelMs: computedAt - scheduledAt,
        samplingMs: sampledAt - computedAt,
        otherMs: scheduledAt - startedAt + endedAt - sampledAt,
      };
      this.#flush(false, { kind: run.kind, ...times, ...result });
      run.charge();
      startedAt = endedAt;
    }
  }

  /** Gives slots to waiting sequences. If the KV of a suspended one is lost, only its request fails. */
  #admit(): void {
    const { now, report } = this.#options;
    let movedAt = now();
    this.#scheduler.admit(
      (copies) => this.#copy(copies),
      ({ account }) => {
        const before = movedAt;
        movedAt = now();
        this.#clock.charge(account, movedAt - before);
      },
      (cause, lost) => {
        report({ type: 'fault', message: `a sequence could not be moved: ${describeFault(cause)}` });
        if (lost !== null) this.#requests.fail(lost, modelFailure(), true);
      },
    );
  }

  /** Runs the model. Returns null if the run failed or was aborted. */
  async #compute(run: ModelRun): Promise<Float32Array | null> {
    try {
      const computed = run.start();
      return computed instanceof Float32Array ? computed : await computed;
    } catch (thrown) {
      if (!(thrown instanceof RunTerminated)) this.#runFailed(run.requests, thrown);
      return null;
    }
  }

  /** Takes the results of a run. Returns null if the device failed to bring logits that they need. */
  #postprocess(run: ModelRun, logits: Float32Array, now: number): RunResult | null {
    try {
      const result = run.postprocess(logits, now);
      this.#failures = 0;
      return result;
    } catch (thrown) {
      if (run.hasRecorded || !(thrown instanceof RuntimeFault)) throw thrown;
      this.#runFailed(run.requests, thrown);
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
    this.#options.report({ type: 'fault', message });
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
      const { runner } = this.#options;
      for (const { from, to, start, end, state } of copies) {
        if (end > start) runner.copy(from, to, end, start);
        if (state !== undefined) runner.states?.keep(from, state).restore(to, state);
      }
    } catch (cause) {
      throw new EngineFailure(`a KV copy failed: ${describeFault(cause)}`, { cause });
    }
  }

  #check(): void {
    const broken = this.violations();
    if (broken.length > 0) throw new EngineFailure(broken.join('; '));
  }

  #flush(urgent: boolean, report?: StepReport): void {
    this.#requests.flush(() => this.status, urgent, report);
  }
}

/** Returns null without memory for a single chunk. */
const newStore = (...options: ConstructorParameters<typeof PrefixStore>): PrefixStore | null =>
  prefixStoreRoom(options[0]).chunks > 0 ? new PrefixStore(...options) : null;

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
