/** The state of one engine in the life cycle. Pure. */

/** What the life cycle needs to know about one configured model. */
export interface ModelSpec {
  readonly name: string;
  /** Equal keys can share one engine. */
  readonly key: string;
  /** Main memory or a device's memory. Engines in the same memory share its limit. */
  readonly memory: string;
  /** Bytes of weights and KV cache. */
  readonly bytes: number;
  readonly loadAtStart: boolean;
  /** Unload after this long without a request; null = never. */
  readonly idleMs: number | null;
  /** An estimate, used until a load was measured. */
  readonly expectedLoadMs: number;
}

/** Returns the most bytes that engines may hold in a memory. */
export type LimitOf = (memory: string) => number;

export type Phase = 'unloaded' | 'waiting' | 'loading' | 'loaded' | 'unloading' | 'failed';

export interface ModelEngine {
  readonly id: number;
  readonly name: string;
  readonly key: string;
  readonly memory: string;
  readonly bytes: number;
  phase: Phase;
  /** True if the engine is no longer configured, or was replaced. */
  retired: boolean;
  /** True if a request needs it while it is being unloaded. */
  wanted: boolean;
  /** Requests that it serves now. */
  users: number;
  /** Consecutive failures to load. */
  failures: number;
  /** Expected load time: the last one with a margin, or the estimate. */
  loadMs: number;
  loadingSince: number;
  /** When clients that were told to retry will be back. */
  expectedAt: number;
  /** Start of the idle time; in the future while a client is expected back. */
  idleSince: number;
  /** After a failure: when to try again; Infinity = never with this configuration. */
  retryAt: number;
}

const FIRST_RETRY_MS = 2_000;
const LAST_RETRY_MS = 300_000;

/** Returns the wait after the n-th consecutive failure. */
export const retryDelayMs = (failures: number): number =>
  Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));

export const holdsMemory = ({ phase }: Pick<ModelEngine, 'phase'>): boolean =>
  phase === 'loading' || phase === 'loaded' || phase === 'unloading';

/** An overdue load is expected to take at least this fraction of its time longer. */
const OVERDUE = 1 / 4;

/** The next load is expected to take this many times the last one. */
export const MARGIN = 1.5;

/** Returns the expected time until the engine is loaded, in whole seconds. Waiting for memory cannot be predicted. */
export function expectedMs({ phase, loadMs, loadingSince }: ModelEngine, now: number): number {
  const elapsed = phase === 'loading' ? now - loadingSince : 0;
  return Math.max(1, Math.ceil(Math.max(loadMs - elapsed, elapsed * OVERDUE) / 1000)) * 1000;
}
