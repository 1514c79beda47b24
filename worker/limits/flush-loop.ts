import type { LimiterCaller } from './limiter-client.ts';

/** Decisions wait this long for others before a call. */
const FLUSH_MS = 100;
/** Busy isolates wait longer: each call then carries more. */
const BUSY_FLUSH_MS = 250;
const BUSY_DECISIONS = 10;
/** Longest pause while the object does not answer. */
export const MAX_PAUSE_MS = 1_600;
/**
 * After pauses of this length in all, the next request takes the loop over: a request's work may end 30 s
 * after its response.
 */
const TAKE_OVER_MS = 5_000;
const MAX_MS = 15_000;
/** A loop without a sign of life for this long has ended with its request. */
const DEAD_MS = 5_000;

/** What the loop delivers. */
interface Deliverable {
  /** Nothing is left to tell the object, now or later. */
  readonly isQuiet: boolean;
  isDue(now: number): boolean;
  /** Calls the object. Returns the number of decisions that the call carried. */
  flush(caller: LimiterCaller): Promise<number>;
}

interface Run {
  beatAt: number;
  /** Milliseconds of all pauses. */
  paused: number;
}

/**
 * Calls the object with all news until an isolate holds nothing of a tenant's budgets. I/O belongs to a
 * single request, so the loop runs as the background work of one request at a time.
 */
export class FlushLoop {
  readonly #news: Deliverable;
  #run: Run | null = null;

  constructor(news: Deliverable) {
    this.#news = news;
  }

  get isRunning(): boolean {
    return this.#run !== null;
  }

  /** Makes sure that a request runs the loop: one whose work has not become too old. */
  keep(caller: LimiterCaller): void {
    const { beatAt = -Infinity, paused = 0 } = this.#run ?? {};
    if (paused < TAKE_OVER_MS && caller.now() - beatAt < DEAD_MS) return;
    if (this.#news.isQuiet) return;
    const run = { beatAt: caller.now(), paused: 0 };
    this.#run = run;
    caller.waitUntil(this.#repeat(run, caller));
  }

  async #repeat(run: Run, caller: LimiterCaller): Promise<void> {
    let pause = FLUSH_MS;
    while (run.paused < MAX_MS && !this.#news.isQuiet) {
      await caller.backoff.pause(pause);
      if (this.#run !== run) return;
      run.beatAt = caller.now();
      run.paused += pause;
      if (!this.#news.isDue(run.beatAt)) continue;
      pause = await this.#news.flush(caller).then(
        (decisions) => (decisions < BUSY_DECISIONS ? FLUSH_MS : BUSY_FLUSH_MS),
        () => Math.min(MAX_PAUSE_MS, 2 * pause),
      );
    }
    if (this.#run === run) this.#run = null;
  }
}
