import { mulberry32 } from '../../support/random.ts';
import { ADDITIONS, measureConstrained } from './constrained.ts';
import { measureHostile } from './hostile.ts';
import { CONTEXT, jobOf, type Plan, type Progress, tokenIds } from './plan.ts';
import { measureInterference, measurePrefill, measurePrefixHit } from './scenarios.ts';
import { soak } from './soak.ts';
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

/** Returns the sum of a metric of the origin over its labels. */
async function metric(metricsUrl: string, name: string): Promise<number> {
  const text = await (await fetch(new URL('/metrics', metricsUrl))).text();
  const values = text.matchAll(new RegExp(`^continuo_origin_${name}(?:\\{.*\\})? (\\S+)`, 'gm'));
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}

/** Measures an overload by 200 clients of two tenants, one with ten times as many clients as the other. */
export async function overloadFigures(
  target: Target,
  metricsUrl: string,
  seconds: number,
  progress: Progress,
): Promise<Figures> {
  progress(0, `${target.name}, ${seconds} s of 200 clients`);
  const clients = { small: 18, large: 182 };
  const job = (tenant: string, index: number): Job => ({
    tenant,
    prompt: tokenIds(index, 64),
    maxTokens: 48,
  });
  const memory = () => metric(metricsUrl, 'resident_bytes');
  const result = await soak(target, { seconds, clients, job, refusedPauseMs: 1000, memory });
  progress(1, target.name);
  const { small = 0, large = 0 } = result.tokensByTenant;
  return [
    [`${seconds} s of 200 clients: completed / refused with 503`, `${result.completed} / ${result.refused}`],
    ['other failures', JSON.stringify(result.failures)],
    ['share of the tenant with a tenth of the clients', `${rounded((100 * small) / (small + large), 1)} %`],
    ['resident MiB, early / late', `${rounded(result.memoryMiB.early)} / ${rounded(result.memoryMiB.late)}`],
  ];
}

/**
 * Sends prompts of random lengths, half of which share a prefix, and watches the memory of the prefix store.
 */
export async function storeMemoryFigures(
  target: Target,
  metricsUrl: string,
  seconds: number,
  progress: Progress,
): Promise<Figures> {
  progress(0, `${target.name}, ${seconds} s of random prompts`);
  const random = mulberry32(1);
  const job = (tenant: string, index: number): Job => {
    const shared = random() < 0.5 ? tokenIds(Math.floor(random() * 40), Math.floor(random() * 800)) : [];
    const prompt = [...shared, ...tokenIds(100 + index, 1 + Math.floor(random() * 400))];
    return { tenant, prompt, maxTokens: 1 + Math.floor(random() * 48), cachePrompt: true };
  };
  let most = 0;
  const memory = async () => {
    most = Math.max(most, await metric(metricsUrl, 'prefix_store_bytes'));
    return await metric(metricsUrl, 'resident_bytes');
  };
  const clients = { a: 8, b: 8 };
  const result = await soak(target, { seconds, clients, job, refusedPauseMs: 1000, memory });
  progress(1, target.name);
  const counts = await Promise.all(
    ['stored_chunks', 'evicted_chunks', 'restored_tokens'].map((name) =>
      metric(metricsUrl, `prefix_store_${name}`),
    ),
  );
  return [
    [`${seconds} s of random prompts: completed / refused`, `${result.completed} / ${result.refused}`],
    ['other failures', JSON.stringify(result.failures)],
    ['chunks stored / evicted, tokens restored', counts.join(' / ')],
    ['most MiB of the prefix store', rounded(most / 2 ** 20, 1)],
    ['resident MiB, early / late', `${rounded(result.memoryMiB.early)} / ${rounded(result.memoryMiB.late)}`],
  ];
}
