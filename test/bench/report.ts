import Table from 'cli-table3';
import type { LoadResult } from './load.ts';

/** One layer's results, each beside the bare loop of the same minute. */
export interface TargetReport {
  readonly name: string;
  readonly loads: readonly LoadResult[];
}

const rounded = (value: number, digits = 0): string =>
  Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '–';

/** The main table: one row per target and concurrency. */
export function loadTable(reports: readonly TargetReport[]): string {
  const table = new Table({
    head: [
      'target',
      'conc.',
      'tok/s',
      'decode tok/s',
      'bare loop',
      '% of bare',
      'TTFT p50/p95/p99 ms',
      'ITL p50/p95/p99 ms',
      'err',
    ],
    style: { head: [], border: [] },
  });
  for (const { name, loads } of reports) {
    for (const load of loads) {
      const { timeToFirstToken: first, interToken: gap } = load;
      table.push([
        name,
        load.concurrency,
        rounded(load.tokensPerSecond),
        rounded(load.decodeTokensPerSecond),
        rounded(load.bareTokensPerSecond),
        rounded((100 * load.decodeTokensPerSecond) / load.bareTokensPerSecond),
        [first.p50, first.p95, first.p99].map((value) => rounded(value, 1)).join(' / '),
        [gap.p50, gap.p95, gap.p99].map((value) => rounded(value, 2)).join(' / '),
        load.errors,
      ]);
    }
  }
  return table.toString();
}

/** A small two-column table of single figures. */
export function figureTable(figures: readonly (readonly [string, string])[]): string {
  const table = new Table({ style: { head: [], border: [] } });
  for (const [name, value] of figures) table.push([name, value]);
  return table.toString();
}

export { rounded };
