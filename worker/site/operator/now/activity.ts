import type { ModelActivity } from '../../account/api-objects.ts';

/** What follows from the figures of `GET /admin/v1/activity`. */

const MINUTES = 60;

/** Returns the beginnings of the last 60 whole minutes in Unix seconds. @param now Unix milliseconds */
export function lastMinutes(now: number): readonly number[] {
  const present = Math.floor(now / 60_000);
  return Array.from({ length: MINUTES }, (_, at) => (present - MINUTES + at) * 60);
}

/** Returns the tokens per second of each minute, of all models together. */
export function rates(models: readonly ModelActivity[], minutes: readonly number[]): number[] {
  const tokens = new Map<number, number>();
  for (const { minutes: all } of models)
    for (const minute of all) tokens.set(minute.at, (tokens.get(minute.at) ?? 0) + minute.tokens);
  return minutes.map((at) => (tokens.get(at) ?? 0) / 60);
}

/**
 * Returns the milliseconds below which a share of the first tokens of the hour came, by a line through its
 * bucket; null = there were none.
 */
export function firstTokenMs(
  { minutes }: Pick<ModelActivity, 'minutes'>,
  bounds: readonly number[],
  share: number,
): number | null {
  const counts = [...bounds, Infinity].map((_, at) =>
    minutes.reduce((sum, { delays }) => sum + (delays[at] ?? 0), 0),
  );
  let rest = share * counts.reduce((sum, count) => sum + count, 0);
  if (rest === 0) return null;
  const at = counts.findIndex((count) => {
    if (rest <= count) return true;
    rest -= count;
    return false;
  });
  const [from, to] = [bounds[at - 1] ?? 0, bounds[at] ?? bounds.at(-1)!];
  return (from + (to - from) * (rest / counts[at]!)) * 1000;
}
