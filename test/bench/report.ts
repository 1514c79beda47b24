import Table from 'cli-table3';
import type { LoadResult } from './load.ts';

/** One server's results, with the ceiling of the same run where there is one. */
export interface TargetReport {
  readonly name: string;
  readonly loads: readonly LoadResult[];
}

export interface CeilingPoint {
  readonly batch: number;
  readonly tokensPerSecond: number;
}

const rounded = (value: number, digits = 0): string =>
  Number.isFinite(value)
    ? value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : '–';

/** The main table: one row per target and concurrency. */
export function loadTable(reports: readonly TargetReport[], ceiling: readonly CeilingPoint[]): string {
  const table = new Table({
    head: [
      'target',
      'conc.',
      'tok/s',
      'decode tok/s',
      '% of bare',
      'TTFT p50/p95/p99 ms',
      'ITL p50/p95/p99 ms',
      'err',
    ],
    style: { head: [], border: [] },
  });
  for (const { batch, tokensPerSecond } of ceiling) {
    table.push(['bare loop', batch, '', rounded(tokensPerSecond), '100', '', '', '']);
  }
  for (const { name, loads } of reports) {
    for (const load of loads) {
      const bare = ceiling.find(({ batch }) => batch === load.concurrency)?.tokensPerSecond ?? Number.NaN;
      const { timeToFirstToken: first, interToken: gap } = load;
      table.push([
        name,
        load.concurrency,
        rounded(load.tokensPerSecond),
        rounded(load.decodeTokensPerSecond),
        rounded((100 * load.decodeTokensPerSecond) / bare),
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
