/** Runs `then` in `ms` milliseconds, unless what it returns is called before. */
export type After = (ms: number, then: () => void) => () => void;

/** With a timer of the platform for each call. */
export const afterAlone: After = (ms, then) => {
  const id = setTimeout(then, ms);
  return () => clearTimeout(id);
};

/** The platform's timer looks at least so often, so that hardly any wait begins that ends before it is due. */
const LOOK_MS = 5_000;

interface Wait {
  readonly until: number;
  readonly then: () => void;
}

/**
 * All time limits of one request, on one timer of the platform. Nearly all are lifted long before they pass, and setting
 * and clearing a timer for each took up to a tenth of a plain request's CPU.
 */
export class RequestTimers {
  readonly #now: () => number;
  readonly #waits = new Set<Wait>();
  /** When the platform's timer rings; null = there is none. */
  #due: number | null = null;
  #cancel = (): void => {};

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  readonly after: After = (ms, then) => {
    const wait = { until: this.#now() + ms, then };
    this.#waits.add(wait);
    this.#lookBy(wait.until);
    // The platform's timer stays: it finds nothing to do, and dies with the request.
    return () => this.#waits.delete(wait);
  };

  #lookBy(until: number): void {
    const now = this.#now();
    const due = Math.min(until, now + LOOK_MS);
    if (this.#due !== null && this.#due <= due) return;
    this.#cancel();
    this.#due = due;
    this.#cancel = afterAlone(due - now, () => this.#look());
  }

  #look(): void {
    this.#due = null;
    const now = this.#now();
    for (const wait of [...this.#waits]) {
      // What runs may cancel those behind it.
      if (wait.until <= now && this.#waits.delete(wait)) wait.then();
    }
    if (this.#waits.size === 0) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { until } of this.#waits) next = Math.min(next, until);
    this.#lookBy(next);
  }
}
