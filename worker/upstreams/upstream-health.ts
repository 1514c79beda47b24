import {
  allows,
  type BreakerState,
  CLOSED,
  failed,
  started,
  succeeded,
  withdrawn,
} from './circuit-breaker.ts';

/** What the end of a request says about its upstream. */
export type Verdict = 'success' | 'failure' | 'unknown';

interface Health {
  breaker: BreakerState;
  running: number;
}

/** What an isolate knows of one upstream. */
export interface UpstreamCondition {
  /** Half-open: the next request, or the one that runs, is a probe. */
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Failures since the last success. */
  readonly failures: number;
  readonly running: number;
}

/** A preferred upstream is skipped if it runs this much more than the average. */
const OVERLOAD = 1.25;
/** An upstream with fewer requests than this is never skipped, so that affinity holds at low load. */
const MIN_BOUND = 4;

/** One isolate's state of its upstreams: circuit breakers and running requests. */
export class UpstreamHealth {
  readonly #now: () => number;
  readonly #health = new Map<string, Health>();

  constructor(now: () => number) {
    this.#now = now;
  }

  #of(name: string): Health {
    const health = this.#health.get(name) ?? { breaker: CLOSED, running: 0 };
    this.#health.set(name, health);
    return health;
  }

  /**
   * Reorders a ranking: healthy upstreams with room first, then busy ones, then those with an open breaker.
   * None is left out, because if all are broken, a request may still try them.
   */
  order(ranked: readonly string[]): string[] {
    const running = ranked.map((name) => this.#of(name).running);
    const mean = (running.reduce((sum, count) => sum + count, 0) + 1) / ranked.length;
    const bound = Math.max(MIN_BOUND, Math.ceil(mean * OVERLOAD));
    const penalty = (name: string): number => {
      const health = this.#of(name);
      if (!allows(health.breaker, this.#now())) return 2;
      return health.running >= bound ? 1 : 0;
    };
    return ranked.toSorted((a, b) => penalty(a) - penalty(b));
  }

  conditionOf(name: string): UpstreamCondition {
    const { breaker, running } = this.#of(name);
    const { openUntil, failures } = breaker;
    const open = openUntil !== null && this.#now() < openUntil ? 'open' : 'half-open';
    return { breaker: openUntil === null ? 'closed' : open, failures, running };
  }

  /** Forgets an upstream that was removed or changed. */
  forget(name: string): void {
    this.#health.delete(name);
  }

  /** Records that a request is sent to `name`. The returned function takes its verdict, once. */
  begin(name: string): (verdict: Verdict) => void {
    const health = this.#of(name);
    health.running += 1;
    health.breaker = started(health.breaker, this.#now());
    let open = true;
    return (verdict) => {
      if (!open) return;
      open = false;
      health.running -= 1;
      if (verdict === 'success') health.breaker = succeeded();
      else if (verdict === 'failure') health.breaker = failed(health.breaker, this.#now());
      else health.breaker = withdrawn(health.breaker);
    };
  }
}
