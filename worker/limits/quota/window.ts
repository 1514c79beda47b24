/**
 * Sliding window: at most `limit` in any 60 successive seconds of the clock. Amounts of the same second share a cell, so
 * the window has at most 60 cells at any rate. A token bucket would be shorter, but its refill lets more than the limit
 * pass during a burst.
 */

const WINDOW_SECONDS = 60;

/** [second of the clock, amount], oldest first. Plain data, so that it can be stored as JSON. */
export type Window = [second: number, amount: number][];

const secondOf = (now: number): number => Math.floor(now / 1000);

/** Returns the Unix milliseconds at which a cell leaves the window. */
const endOf = (second: number): number => (second + WINDOW_SECONDS) * 1000;

/** Drops the cells that have left the window. */
function prune(window: Window, now: number): void {
  let gone = 0;
  while (gone < window.length && endOf(window[gone]![0]) <= now) gone += 1;
  if (gone > 0) window.splice(0, gone);
}

/** Returns the sum of the window at `now`. */
export function used(window: Window, now: number): number {
  return window.reduce((sum, [second, amount]) => (endOf(second) > now ? sum + amount : sum), 0);
}

/** Adds an amount and returns its cell, with which `correct` finds it again. */
export function add(window: Window, amount: number, now: number): number {
  prune(window, now);
  const second = secondOf(now);
  const last = window.at(-1);
  if (last?.[0] === second) last[1] += amount;
  else window.push([second, amount]);
  return second;
}

/** Corrects an earlier amount. Has no effect once its cell has left the window. */
export function correct(window: Window, second: number, difference: number): void {
  const cell = window.find((candidate) => candidate[0] === second);
  if (cell) cell[1] += difference;
}

/** Returns the milliseconds until `amount` fits if nothing else is added: 0 = now, Infinity = never. */
export function waitFor(window: Window, limit: number, amount: number, now: number): number {
  if (amount > limit) return Number.POSITIVE_INFINITY;
  let over = used(window, now) + amount - limit;
  if (over <= 0) return 0;
  for (const [second, held] of window) {
    if (endOf(second) <= now) continue;
    over -= held;
    if (over <= 0) return endOf(second) - now;
  }
  return 0;
}

/** Returns the milliseconds until the window is empty. */
export function resetIn(window: Window, now: number): number {
  const last = window.findLast(([, amount]) => amount > 0);
  return last ? Math.max(0, endOf(last[0]) - now) : 0;
}
