/**
 * Keeps requests away from an upstream that fails. Pure: the clock is an argument (Unix milliseconds).
 * closed → (FAILURES in a row) → open → (after a while) → half-open: one probe → closed, or open for twice as long.
 */

export interface BreakerState {
  /** Failures since the last success. */
  readonly failures: number;
  /** Null = closed. */
  readonly openUntil: number | null;
  /** How long it is open next time. */
  readonly pauseMs: number;
  /** When the running probe began; null = none. */
  readonly probingSince: number | null;
}

export const FAILURES = 5;
export const FIRST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 60_000;
/** A probe of which nothing was heard by then has been lost. */
export const PROBE_MS = 30_000;

export const CLOSED: BreakerState = {
  failures: 0,
  openUntil: null,
  pauseMs: FIRST_PAUSE_MS,
  probingSince: null,
};

/** May a request go there now? */
export function allows(state: BreakerState, now: number): boolean {
  if (state.openUntil === null) return true;
  if (now < state.openUntil) return false;
  return state.probingSince === null || now - state.probingSince >= PROBE_MS;
}

/** A request that `allows` let through is sent; on a half-open breaker it becomes the probe. */
export const started = (state: BreakerState, now: number): BreakerState =>
  state.openUntil === null ? state : { ...state, probingSince: now };

/** It answered: everything is forgotten. */
export const succeeded = (): BreakerState => CLOSED;

/** A request ended without saying anything about the upstream, e.g. because its client left. */
export const withdrawn = (state: BreakerState): BreakerState => ({ ...state, probingSince: null });

export function failed(state: BreakerState, now: number): BreakerState {
  const failures = state.failures + 1;
  if (state.openUntil === null && failures < FAILURES) return { ...state, failures };
  // Failures of requests sent before it opened say nothing new.
  if (state.openUntil !== null && state.probingSince === null) return { ...state, failures };
  const pauseMs = Math.min(state.pauseMs * 2, LONGEST_PAUSE_MS);
  return { failures, openUntil: now + state.pauseMs, pauseMs, probingSince: null };
}
