import Table from 'cli-table3';
import { type LoadFigures, loadFigures, type Percentiles, runLoad } from '../../../origin/cli/load.ts';
import { jobOf, type Plan, type Progress } from './plan.ts';
import { rounded } from './statistics.ts';
import type { Target } from './target.ts';

interface ClosedLoad extends LoadFigures {
  readonly concurrency: number;
}

/**
 * Keeps so many requests running: each that ends is followed by the next. As in `vllm bench serve`, all
 * count. The same number warms up before.
 */
export async function measureClosedLoops(
  target: Target,
  plan: Plan,
  progress: Progress,
): Promise<ClosedLoad[]> {
  const job = jobOf(plan);
  const loads: ClosedLoad[] = [];
  for (const [part, concurrency] of plan.concurrency.entries()) {
    progress(part / plan.concurrency.length, `concurrency ${concurrency}`);
    await runLoad(concurrency, concurrency, (index) => target.run(job(index)));
    const begun = performance.now();
    const traces = await runLoad(concurrency, plan.waves * concurrency, (index) =>
      target.run(job(concurrency + index)),
    );
    loads.push({ concurrency, ...loadFigures(traces, performance.now() - begun) });
  }
  return loads;
}

/** The figures of `vllm bench serve`, by its names. */
export function closedTable(loads: readonly ClosedLoad[]): string {
  const times = ['TTFT', 'TPOT', 'ITL'].map((name) => `${name} p50 / p99 ms`);
  const head = ['concurrency', 'requests', 'errors', 'requests/s', 'tokens/s', ...times];
  const table = new Table({ head, style: { head: [], border: [] } });
  const pair = ({ p50, p99 }: Percentiles) => `${rounded(p50, 2)} / ${rounded(p99, 2)}`;
  for (const { concurrency, requests, errors, requestsPerSecond, tokensPerSecond, ...load } of loads) {
    const { timeToFirstToken, perToken, interToken } = load;
    table.push([
      concurrency,
      requests,
      errors,
      rounded(requestsPerSecond, 1),
      rounded(tokensPerSecond, 1),
      ...[timeToFirstToken, perToken, interToken].map(pair),
    ]);
  }
  return table.toString();
}
