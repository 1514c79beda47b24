import type { LimiterCall } from '../../env/limiter-protocol.ts';

const RECENT_CALLS = 1_000;
const RECENT_ISOLATES = 1_000;

/** Removes the oldest entry if there are too many. */
function keepRecent<T>(all: Map<T, unknown> | Set<T>, count: number): void {
  const [oldest] = all.keys();
  if (all.size > count) all.delete(oldest!);
}

/** Numbers of the recent calls of each isolate. Connections, and what they may repeat, end with the object. */
export class RecentCalls {
  readonly #numbers = new Map<string, Set<number>>();

  /** @throws Error if the call has arrived before */
  add({ isolate, number }: LimiterCall): void {
    const numbers = this.#numbers.get(isolate) ?? new Set();
    if (numbers.has(number)) throw new Error('This call has arrived before.');
    keepRecent(numbers.add(number), RECENT_CALLS);
    // The isolate that called last is the newest entry.
    this.#numbers.delete(isolate);
    this.#numbers.set(isolate, numbers);
    keepRecent(this.#numbers, RECENT_ISOLATES);
  }
}
