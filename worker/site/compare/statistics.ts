/** Statistics of one quantity over the samples of one side. */
export interface Summary {
  readonly count: number;
  readonly mean: number;
  /** Sample standard deviation; 0 for a single sample. */
  readonly deviation: number;
  readonly median: number;
}

/** @returns null without values */
export function summarize(values: readonly number[]): Summary | null {
  if (values.length === 0) return null;
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (count - 1) / 2;
  return {
    count,
    mean,
    deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : 0,
    median: (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2,
  };
}

/** Returns a number with one decimal and a true minus sign. */
export const decimal = (value: number): string => value.toFixed(1).replace('-', '−');

/** Counts of several series over the same bins. */
export interface Histogram {
  /** Lower edges; a bin reaches to the next edge, which it excludes. */
  readonly edges: readonly number[];
  readonly width: number;
  /** One list per series, one count per bin. */
  readonly counts: readonly (readonly number[])[];
}

const MAX_BINS = 24;

/**
 * Puts values into bins whose width is 1, 2 or 5 times a power of ten.
 * @param integers bins are not narrower than 1
 * @returns null without values
 */
export function histogram(series: readonly (readonly number[])[], integers: boolean): Histogram | null {
  const values = series.flat();
  if (values.length === 0) return null;
  const least = Math.min(...values);
  const greatest = Math.max(...values);
  const width = binWidth((greatest - least) / MAX_BINS, integers);
  const first = Math.floor(least / width);
  const bins = Math.floor(greatest / width) - first + 1;
  const edges = Array.from({ length: bins }, (_, bin) => (first + bin) * width);
  return {
    edges,
    width,
    counts: series.map((list) => {
      const counts = Array.from({ length: bins }, () => 0);
      for (const value of list) counts[Math.floor(value / width) - first]! += 1;
      return counts;
    }),
  };
}

/** Smaller differences are rounding errors. */
const NARROWEST = 1e-9;

/** Returns the smallest width of the form 1, 2 or 5 · 10ⁿ that is greater than `least`. */
function binWidth(least: number, integers: boolean): number {
  if (least < NARROWEST) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  const width = [1, 2, 5, 10].map((step) => step * power).find((step) => step > least) ?? 20 * power;
  return integers ? Math.max(1, width) : width;
}
