import { quantile } from '../../../origin/cli/load.ts';

export { type Percentiles, percentiles, quantile } from '../../../origin/cli/load.ts';

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** For people: with digit groups; a dash for NaN. */
export const rounded = (value: number, digits = 0): string =>
  Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '–';
