import type { KvCopy } from '../kv/pending-copies.ts';
import type { StepReport } from '../messages.ts';
import type { TimeShares } from '../scheduling/time-shares.ts';
import type { OpenRequest } from '../sequences/open-request.ts';
import type { PrefixCache } from '../state/prefix-cache.ts';
import type { RunningSet } from '../state/running-set.ts';
import type { Requests } from './requests.ts';
import type { RunClock } from './run-clock.ts';

export interface ModelRun extends Pick<StepReport, 'kind'> {
  /** To be made before the run. */
  readonly copies: readonly KvCopy[];
  /** The requests that fail if the run fails. */
  readonly requests: readonly OpenRequest[];
  /**
   * Whether `postprocess` has recorded copies of other slots, or prefixes. A fault of the device before that
   * fails only the requests; after that, slots may not hold what is recorded.
   */
  readonly hasRecorded: boolean;
  /** Begins a prompt's run behind a decode run that has begun, if it can. `start` then waits for it. */
  begin?(): void;
  /** Charges the time that the device has taken for a run that has begun. */
  chargeBegun?(): void;
  start(): Float32Array | Promise<Float32Array>;
  postprocess(logits: Float32Array, now: number): RunResult;
  /** Charges the time of the whole run to the tenants in it, also if it failed. */
  charge(): void;
}

/** Counters of a run, and the KV copies to make after it. */
export interface RunResult extends Pick<StepReport, 'rows' | 'tokens'> {
  readonly copies: readonly KvCopy[];
}

/** The parts of the engine that runs read and advance. */
export interface ModelRunsParts {
  readonly running: RunningSet;
  readonly prefixes: PrefixCache;
  readonly requests: Requests;
  readonly shares: TimeShares;
  readonly clock: RunClock;
}
