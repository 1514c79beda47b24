/** One engine of the life cycle; pure. */

/** What the configuration says of one model, as far as its life is concerned. */
export interface ModelTerms {
  readonly name: string;
  /** Equal keys mean that one engine serves both. */
  readonly key: string;
  /** What weights and KV cache lie in, main memory or a device's: engines in the same one share its limit. */
  readonly memory: string;
  /** Of weights and KV cache. */
  readonly bytes: number;
  readonly loadAtStart: boolean;
  /** Unloaded after this long without a request; null = never. */
  readonly idleMs: number | null;
  /** A guess, believed until it has been measured. */
  readonly expectedLoadMs: number;
}

/** Most bytes that engines may hold of a memory. */
export type LimitOf = (memory: string) => number;

export type Phase = 'unloaded' | 'waiting' | 'loading' | 'loaded' | 'unloading' | 'failed';

export interface Engine {
  readonly id: number;
  readonly name: string;
  readonly key: string;
  readonly memory: string;
  readonly bytes: number;
  phase: Phase;
  /** No longer configured, or replaced. */
  retired: boolean;
  /** Asked for while it is being unloaded. */
  wanted: boolean;
  /** Requests it is serving. */
  users: number;
  /** In a row. */
  failures: number;
  /** What a load may take: a margin more than the last one; before the first one the guess. */
  loadMs: number;
  loadingSince: number;
  /** When those who were told to come again will be back. */
  expectedAt: number;
  /** Since when it is without a user; ahead of the clock while somebody is expected. */
  idleSince: number;
  /** After a failure: when it may be tried again; Infinity = never as it is configured. */
  retryAt: number;
}

const FIRST_RETRY_MS = 2_000;
const LAST_RETRY_MS = 300_000;

/** Wait after the n-th failure in a row. */
export const retryDelayMs = (failures: number): number =>
  Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));

export const holdsMemory = ({ phase }: Pick<Engine, 'phase'>): boolean =>
  phase === 'loading' || phase === 'loaded' || phase === 'unloading';

/** A load that takes longer than expected will take this part of its time more, at least. */
const OVERDUE = 1 / 4;

/** The next load is expected to take this many times what the last one took. */
export const MARGIN = 1.5;

/**
 * Until it is loaded, in whole seconds, as far as can be known: whoever waits for memory waits for others' streams.
 */
export function expectedMs({ phase, loadMs, loadingSince }: Engine, now: number): number {
  const elapsed = phase === 'loading' ? now - loadingSince : 0;
  return Math.max(1, Math.ceil(Math.max(loadMs - elapsed, elapsed * OVERDUE) / 1000)) * 1000;
}
