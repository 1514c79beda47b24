import {
  allows,
  type BreakerState,
  CLOSED,
  failed,
  started,
  succeeded,
  withdrawn,
} from './circuit-breaker.ts';

/** How a request to an upstream ended, as far as the upstream is concerned. */
export type Verdict = 'success' | 'failure' | 'unknown';

interface Health {
  breaker: BreakerState;
  running: number;
}

/** A preferred upstream is passed over when it runs this much more than the average of all. */
const OVERLOAD = 1.25;
/** … and never with fewer requests than this, so that quiet times keep their affinity. */
const QUIET = 4;

/** What one isolate knows of its upstreams: who fails, and how many requests it has running where. */
export class UpstreamHealth {
  readonly #now: () => number;
  readonly #health = new Map<string, Health>();

  constructor(now: () => number) {
    this.#now = now;
  }

  #of(name: string): Health {
    const known = this.#health.get(name) ?? { breaker: CLOSED, running: 0 };
    this.#health.set(name, known);
    return known;
  }

  /**
   * Reorders a ranking: healthy upstreams with room first, then busy ones, then those whose breaker is open. Nobody is
   * left out, because a request has nothing to lose where all are broken.
   */
  order(ranked: readonly string[]): string[] {
    const running = ranked.map((name) => this.#of(name).running);
    const mean = (running.reduce((sum, count) => sum + count, 0) + 1) / ranked.length;
    const bound = Math.max(QUIET, Math.ceil(mean * OVERLOAD));
    const penalty = (name: string): number => {
      const health = this.#of(name);
      if (!allows(health.breaker, this.#now())) return 2;
      return health.running >= bound ? 1 : 0;
    };
    return ranked.toSorted((a, b) => penalty(a) - penalty(b));
  }

  /** A request goes to `name`; the returned function takes its verdict, once. */
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
