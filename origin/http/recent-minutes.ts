import type { ActivityMinute } from '@continuo/shared/activity.ts';

const MINUTE_MS = 60_000;
/** The present minute, and the 60 before it. */
const KEPT = 61;

/** Generated tokens and first tokens of the last hour, by model and minute. */
export class RecentMinutes {
  /** Upper bounds of the times to the first token, in seconds. */
  readonly bounds: readonly number[];
  /** By model; a minute is at its number modulo KEPT. */
  readonly #rings = new Map<string, ActivityMinute[]>();

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
  }

  /** @param now Unix milliseconds */
  addTokens(model: string, tokens: number, now: number): void {
    if (tokens > 0) this.#at(model, now).tokens += tokens;
  }

  /** @param seconds from the arrival to the first token */
  addFirstToken(model: string, seconds: number, now: number): void {
    const at = this.bounds.findIndex((bound) => seconds <= bound);
    this.#at(model, now).delays[at === -1 ? this.bounds.length : at]! += 1;
  }

  /** Returns the minutes of the last hour that have something, old ones first. */
  of(model: string, now: number): ActivityMinute[] {
    const first = (Math.floor(now / MINUTE_MS) - KEPT) * 60;
    const kept = Object.values(this.#rings.get(model) ?? []).filter(({ at }) => at > first);
    return kept.toSorted((a, b) => a.at - b.at);
  }

  #at(model: string, now: number): ActivityMinute {
    const minute = Math.floor(now / MINUTE_MS);
    const ring = this.#rings.get(model) ?? [];
    this.#rings.set(model, ring);
    const kept = ring[minute % KEPT];
    if (kept?.at === minute * 60) return kept;
    const fresh = { at: minute * 60, tokens: 0, delays: this.bounds.map(() => 0).concat(0) };
    ring[minute % KEPT] = fresh;
    return fresh;
  }
}
