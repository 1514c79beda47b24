import { ADDITIONS, measureConstrained } from './constrained.ts';
import { measureHostile } from './hostile.ts';
import { CONTEXT, jobOf, type Plan, type Progress, tokenIds } from './plan.ts';
import { measureInterference, measurePrefill, measurePrefixHit } from './scenarios.ts';
import { rounded } from './statistics.ts';
import type { Job, Target } from './target.ts';

/** Named single figures that follow the load table. */
export type Figures = readonly (readonly [name: string, value: string])[];

/** Measures prefill rate, prefix cache hits and the effect of a long prompt on running streams. */
export async function promptFigures(target: Target, progress: Progress): Promise<Figures> {
  progress(0, `${target.name}, prefill`);
  const prefill = await measurePrefill(target, (seed) => tokenIds(seed, 1024), 5);
  progress(0.33, `${target.name}, prefix hit`);
  const prefix = await measurePrefixHit(
    target,
    (seed) => tokenIds(seed, 1024),
    (seed) => tokenIds(seed, 32),
    5,
  );
  progress(0.66, `${target.name}, interference`);
  const running = (index: number): Job => ({ prompt: tokenIds(index, 32), maxTokens: CONTEXT - 64 });
  const { quiet, during } = await measureInterference(
    target,
    4,
    running,
    { prompt: tokenIds(77, 2000), maxTokens: 1 },
    1000,
  );
  progress(1, target.name);
  const share = (100 * prefix.cachedMs) / prefix.coldMs;
  return [
    ['prefill of 1,024 tokens, tokens/s', rounded(prefill)],
    ['TTFT of 1,056 tokens, cold, ms', rounded(prefix.coldMs, 1)],
    ['TTFT with 1,024 of them cached, ms', `${rounded(prefix.cachedMs, 1)} (${rounded(share, 1)} % of cold)`],
    ['inter-token gap of 4 streams, p50 / p99 ms', `${rounded(quiet.p50, 2)} / ${rounded(quiet.p99, 2)}`],
    [
      'the same while 2,000 tokens are prefilled',
      `${rounded(during.p50, 2)} / ${rounded(during.p99, 2)} (p99 = ${rounded(during.p99 / during.p50, 2)} × p50)`,
    ],
  ];
}

/** Concurrent streams in the measurements of constraints. */
export const STREAMS = 8;

/** Clients that send hostile constraints meanwhile. */
const INTRUDERS = 2;

/** Measures how much a constraint, or text boundaries, slow their own stream. */
export async function constrainedFigures(
  target: Target,
  plan: Plan,
  progress: Progress,
  kind: keyof typeof ADDITIONS = 'constrained',
): Promise<Figures> {
  progress(0, `${target.name}, ${kind} load`);
  const waves = 2 * plan.waves;
  const { plain, changed, share } = await measureConstrained(
    target,
    STREAMS,
    waves,
    jobOf(plan),
    ADDITIONS[kind],
  );
  return [
    [
      `${target.name}: decode tokens/s at batch ${STREAMS}, plain / ${kind}`,
      `${rounded(plain)} / ${rounded(changed)} (${rounded(100 * share, 1)} %)`,
    ],
  ];
}

/** Measures how much hostile constraints slow other streams. */
export async function hostileFigures(target: Target, plan: Plan, progress: Progress): Promise<Figures> {
  progress(0, `${target.name}, hostile grammars`);
  const options = {
    seconds: 15,
    streams: STREAMS,
    job: jobOf(plan),
    intruders: INTRUDERS,
    intruderTokens: 32,
  };
  const { quiet, visited, hostile, failures, answers, slowest } = await measureHostile(target, options);
  const gaps = ({ p50, p99 }: typeof quiet) => `${rounded(p50, 2)} / ${rounded(p99, 2)}`;
  const times = (usual: typeof quiet) => rounded(hostile.p99 / usual.p99, 2);
  return [
    [`${target.name}: gap of ${STREAMS} streams alone, p50 / p99 ms`, gaps(quiet)],
    [`the same with ${INTRUDERS} clients that send plain requests`, gaps(visited)],
    [
      `the same with ${INTRUDERS} clients that send hostile grammars`,
      `${gaps(hostile)} (p99 = ${times(quiet)} × alone, ${times(visited)} × plain)`,
    ],
    ['streams that failed; answers to hostile grammars', `${failures}; ${JSON.stringify(answers)}`],
    ['slowest answer to a hostile grammar', `${rounded(slowest.ms)} ms (${slowest.name})`],
  ];
}
