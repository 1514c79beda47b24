import Table from 'cli-table3';
import type { ArchitectureFigures } from './architectures/measure.ts';
import type { AgainstLoad } from './edge/against.ts';
import type { EdgeReport } from './edge/edge.ts';
import type { LoadResult } from './load.ts';
import { rounded } from './statistics.ts';

/** One layer's results, each with the rate of the bare loop in the same minute. */
export interface TargetReport {
  readonly name: string;
  readonly loads: readonly LoadResult[];
}

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
        rounded(100 * load.shareOfBare),
        [first.p50, first.p95, first.p99].map((value) => rounded(value, 1)).join(' / '),
        [gap.p50, gap.p95, gap.p99].map((value) => rounded(value, 2)).join(' / '),
        load.errors,
      ]);
    }
  }
  return table.toString();
}

/** Lists the errors that the table's last column counts: one line per cell that is not 0. */
export const failures = (reports: readonly TargetReport[]): string[] =>
  reports.flatMap(({ name, loads }) =>
    loads
      .filter(({ errors }) => errors > 0)
      .map(
        ({ concurrency, errors, requests, reasons }) =>
          `${name}, ${concurrency}: ${errors} of ${requests} requests failed: ${reasons.join('; ')}`,
      ),
  );

/** A small two-column table of single figures. */
export function figureTable(figures: readonly (readonly [string, string])[]): string {
  const table = new Table({ style: { head: [], border: [] } });
  for (const [name, value] of figures) table.push([name, value]);
  return table.toString();
}

/** The latency that the edge adds, compared with a workerd that only forwards bytes. */
export function edgeTables({ delays, cpu, money }: EdgeReport): string {
  const pair = (p50: number, p99: number) => `${rounded(p50, 2)} / ${rounded(p99, 2)}`;
  const times = new Table({
    head: ['p50 / p99 ms', 'origin', 'bare workerd', 'copying in JS', 'Worker', 'Worker − origin'],
    style: { head: [], border: [] },
  });
  for (const { name, direct, bare, copying, worker } of delays) {
    const added = pair(worker[0] - direct[0], worker[1] - direct[1]);
    times.push([name, pair(...direct), pair(...bare), pair(...copying), pair(...worker), added]);
  }
  const loads = new Table({
    head: ['CPU ms per 1,000 tokens', 'bare workerd', 'copying in JS', 'Worker'],
    style: { head: [], border: [] },
  });
  for (const { name, bare, copying, worker } of cpu) {
    loads.push([name, rounded(bare, 1), rounded(copying, 1), rounded(worker, 1)]);
  }
  const { without, with: priced } = money;
  const added = pair(priced[0] - without[0], priced[1] - without[1]);
  const costs = `Plain request, 1 client, without and with money: ${pair(...without)} and ${pair(...priced)}, added ${added} ms`;
  return `${times}\n${loads}\n${costs}`;
}

/** One row per load; each cell has the rate, p50 and p99. */
export function againstTable(loads: readonly AgainstLoad[]): string {
  const table = new Table({
    head: ['per second; p50 / p99 ms', 'empty workerd', 'Worker', 'gateway', 'Worker ÷ gateway'],
    style: { head: [], border: [] },
  });
  for (const { name, rates, ratio } of loads) {
    const cells = [rates.workerd, rates.worker, rates.gateway].map(
      ([rate, p50, p99]) => `${rounded(rate)}; ${rounded(p50, 2)} / ${rounded(p99, 2)}`,
    );
    table.push([name, ...cells, `${rounded(ratio, 2)} ×`]);
  }
  return table.toString();
}

export function architectureTable(figures: readonly ArchitectureFigures[]): string {
  const table = new Table({
    head: [
      'model',
      'parameters, M',
      'build, s',
      'read, MB/s',
      'peak of the build, MB',
      'first token after, s',
      'tokens/s of 1 and 4 streams',
    ],
    style: { head: [], border: [] },
  });
  for (const one of figures) {
    table.push([
      one.name,
      rounded(one.parameters / 1e6),
      rounded(one.buildSeconds, 1),
      rounded(one.bytesPerSecond / 1e6),
      rounded(one.buildPeakBytes / 1e6),
      rounded(one.firstTokenSeconds, 1),
      Object.values(one.tokensPerSecond)
        .map((rate) => rounded(rate, 1))
        .join(', '),
    ]);
  }
  return table.toString();
}
