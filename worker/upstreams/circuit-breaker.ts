/**
 * Circuit breaker of one upstream. Pure: the clock is an argument (Unix milliseconds).
 * closed → (FAILURES in a row) → open → (after a pause) → half-open: one probe → closed, or open for twice as
 * long.
 */

export interface BreakerState {
  /** Failures since the last success. */
  readonly failures: number;
  /** Null = closed. */
  readonly openUntil: number | null;
  /** Length of the next pause. */
  readonly pauseMs: number;
  /** Start of the running probe; null = none. */
  readonly probingSince: number | null;
}

export const FAILURES = 5;
export const FIRST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 60_000;
/** A probe without a result after this time is lost. */
export const PROBE_MS = 30_000;

export const CLOSED: BreakerState = {
  failures: 0,
  openUntil: null,
  pauseMs: FIRST_PAUSE_MS,
  probingSince: null,
};

/** Returns true if a request may be sent now. */
export function allows(state: BreakerState, now: number): boolean {
  if (state.openUntil === null) return true;
  if (now < state.openUntil) return false;
  return state.probingSince === null || now - state.probingSince >= PROBE_MS;
}

/** Records that a request is sent; on a half-open breaker it is the probe. */
export const started = (state: BreakerState, now: number): BreakerState =>
  state.openUntil === null ? state : { ...state, probingSince: now };

/** Records a success, which closes the breaker. */
export const succeeded = (): BreakerState => CLOSED;

/** Records a request that says nothing about the upstream, for example of a disconnected client. */
export const withdrawn = (state: BreakerState): BreakerState => ({ ...state, probingSince: null });

/** Records a failure. */
export function failed(state: BreakerState, now: number): BreakerState {
  const failures = state.failures + 1;
  if (state.openUntil === null && failures < FAILURES) return { ...state, failures };
  // Requests that were sent before the breaker opened may still fail.
  if (state.openUntil !== null && state.probingSince === null) return { ...state, failures };
  const pauseMs = Math.min(state.pauseMs * 2, LONGEST_PAUSE_MS);
  return { failures, openUntil: now + state.pauseMs, pauseMs, probingSince: null };
}
