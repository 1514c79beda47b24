import Table from 'cli-table3';
import { loadFigures, runLoad } from '../../../origin/cli/load.ts';
import { jobOf, type Plan, type Progress, type TokenCounts } from './plan.ts';
import { median, rounded } from './statistics.ts';
import type { Target } from './target.ts';

/** Medians over waves, of two targets that take turns. */
export interface RivalLoad extends TokenCounts {
  readonly concurrency: number;
  /** Generated tokens over the whole time of a wave, prefill included; by target. */
  readonly tokensPerSecond: readonly number[];
  /** Milliseconds to the first token; by target. */
  readonly firstTokenMs: readonly number[];
  /** The first target's rate divided by the second's in the same turn. */
  readonly ratio: number;
}

/**
 * Sends the same waves to two targets in turns, because the speed of a machine drifts. The first turn of the
 * first load warms up.
 */
export async function measureRival(
  targets: readonly [Target, Target],
  plan: Plan,
  progress: Progress,
): Promise<RivalLoad[]> {
  const { promptTokens, tokens } = plan;
  const job = jobOf(plan);
  const loads: RivalLoad[] = [];
  for (const [part, concurrency] of plan.concurrency.entries()) {
    const turns: { readonly rates: number[]; readonly first: number[] }[] = [];
    for (let turn = part === 0 ? 0 : 1; turn <= plan.waves; turn++) {
      progress((part + turn / (plan.waves + 1)) / plan.concurrency.length, `concurrency ${concurrency}`);
      const results = { rates: [0, 0], first: [0, 0] };
      for (const at of turn % 2 === 0 ? [0, 1] : [1, 0]) {
        const begun = performance.now();
        const traces = await runLoad(concurrency, concurrency, (index) =>
          targets[at]!.run(job(1000 * turn + index)),
        );
        const figures = loadFigures(traces, performance.now() - begun);
        if (figures.errors > 0) throw new Error(`${targets[at]!.name}: ${figures.reasons.join('; ')}`);
        results.rates[at] = figures.tokensPerSecond;
        results.first[at] = figures.timeToFirstToken.p50;
      }
      if (turn > 0) turns.push(results);
    }
    loads.push({
      promptTokens,
      tokens,
      concurrency,
      tokensPerSecond: [0, 1].map((at) => median(turns.map(({ rates }) => rates[at]!))),
      firstTokenMs: [0, 1].map((at) => median(turns.map(({ first }) => first[at]!))),
      ratio: median(turns.map(({ rates }) => rates[0]! / rates[1]!)),
    });
  }
  return loads;
}

/** One row per size of requests and concurrency. */
export function rivalTable(names: readonly string[], loads: readonly RivalLoad[]): string {
  const heads = names.map((name) => `${name}: tokens/s, TTFT ms`);
  const head = ['prompt, answer', 'streams', ...heads, 'ratio'];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const { promptTokens, tokens, concurrency, tokensPerSecond, firstTokenMs, ratio } of loads) {
    const cells = names.map(
      (_, at) => `${rounded(tokensPerSecond[at]!, 1)}, ${rounded(firstTokenMs[at]!, 1)}`,
    );
    table.push([`${promptTokens}, ${tokens}`, concurrency, ...cells, `${rounded(ratio, 2)} ×`]);
  }
  return table.toString();
}
