import { DAY_MS } from '../usage/usage-sums.ts';

/**
 * What a budget has used, by time. A minute is a sliding window: at most `limit` in any 60 successive seconds
 * of the clock. A token bucket would be shorter, but its refill lets more than the limit pass during a burst.
 * A UTC day and month are windows of one cell, and so is what never passes.
 */

/** [cell of time, amount], oldest first. Plain data, so that it can be stored as JSON. */
export type Meter = [cell: number, amount: number][];

/** A point in time, as the cells of all windows: seconds, days since 1970, months since year 0. */
export interface Moment {
  readonly second: number;
  readonly day: number;
  readonly month: number;
}

const CELLS = { minute: 60, day: 1, month: 1, ever: 1 } as const;
export type Window = keyof typeof CELLS;

export function momentOf(now: number): Moment {
  const date = new Date(now);
  const month = date.getUTCFullYear() * 12 + date.getUTCMonth();
  return { second: Math.floor(now / 1000), day: Math.floor(now / DAY_MS), month };
}

function cellOf(window: Window, at: Moment): number {
  if (window === 'ever') return 0;
  return window === 'minute' ? at.second : at[window];
}

/** Returns the sum of the window at a moment. */
export function used(meter: Meter, window: Window, at: Moment): number {
  const first = cellOf(window, at) - CELLS[window] + 1;
  let sum = 0;
  // From the end, and without patterns: this runs for every budget of every decision.
  for (let place = meter.length - 1; place >= 0 && meter[place]![0] >= first; place -= 1)
    sum += meter[place]![1];
  return sum;
}

/** Adds an amount; a negative one corrects an earlier one. Has no effect if its cell has left the window. */
export function add(meter: Meter, window: Window, at: Moment, amount: number): void {
  const cell = cellOf(window, at);
  const last = meter.at(-1);
  if (last === undefined || last[0] < cell) {
    while (meter.length > 0 && meter[0]![0] <= cell - CELLS[window]) meter.shift();
    meter.push([cell, amount]);
  } else {
    // The clock may have stepped back.
    const place = meter.findLastIndex((entry) => entry[0] <= cell);
    const entry = meter[place];
    if (entry?.[0] === cell) entry[1] += amount;
    else if (cell > last[0] - CELLS[window]) meter.splice(place + 1, 0, [cell, amount]);
  }
}

/** Returns whether a moment counts in no minute from another one on. */
export const isBeforeMinute = ({ second }: Moment, at: Moment): boolean => second <= at.second - CELLS.minute;

/** Returns the Unix milliseconds at which a second leaves the minute. */
const endOf = (second: number): number => (second + CELLS.minute) * 1000;

/** Returns the milliseconds until `amount` fits a minute if nothing is added: 0 = now, Infinity = never. */
export function waitFor(meter: Meter, limit: number, amount: number, now: number): number {
  if (amount > limit) return Number.POSITIVE_INFINITY;
  let over = used(meter, 'minute', momentOf(now)) + amount - limit;
  if (over <= 0) return 0;
  for (const [second, held] of meter) {
    if (endOf(second) <= now) continue;
    over -= held;
    if (over <= 0) return endOf(second) - now;
  }
  return 0;
}

/** Returns the milliseconds until a minute is empty. */
export function resetIn(meter: Meter, now: number): number {
  const last = meter.findLast(([, amount]) => amount > 0);
  return last ? Math.max(0, endOf(last[0]) - now) : 0;
}
