import { quantile } from '../../origin/cli/quantile.ts';

export { quantile };

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export const percentiles = (values: readonly number[]): Percentiles => ({
  p50: quantile(values, 0.5),
  p95: quantile(values, 0.95),
  p99: quantile(values, 0.99),
});

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

export const median = (values: readonly number[]): number => quantile(values, 0.5);
