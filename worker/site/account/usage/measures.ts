import { count, money } from '../formats.ts';
import type { UsageSums } from './usage-query.ts';

/** What the chart draws, with its form in words. */
export const MEASURES = {
  tokens: {
    name: 'Tokens',
    of: ({ prompt_tokens, completion_tokens }: UsageSums) => prompt_tokens + completion_tokens,
    show: (value: number) => `${count(value)} tokens`,
  },
  cost: {
    name: 'Cost',
    of: ({ cost_micros }: UsageSums) => cost_micros,
    show: (value: number) => `cost ${money(value)}`,
  },
  requests: {
    name: 'Requests',
    of: ({ requests }: UsageSums) => requests,
    show: (value: number) => `${count(value)} requests`,
  },
} as const;
export type MeasureName = keyof typeof MEASURES;

/** Returns the least of 1, 2, 5 and their multiples by powers of ten that is at least `value`. */
export function niceMaximum(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((nice) => nice >= value) ?? 10 * power;
}
