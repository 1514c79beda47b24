/** Statistics of one quantity over the samples of one side. */
export interface Summary {
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
    mean,
    deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : 0,
    median: (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2,
  };
}
