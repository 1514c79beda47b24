import { startSystem } from '../support/system.ts';
import { measureCeiling } from './ceiling.ts';
import { measureConstrained } from './constrained.ts';
import { engineTarget } from './engine-target.ts';
import { measureHostile } from './hostile.ts';
import { type LoadResult, measureLoad } from './load.ts';
import type { BenchModel } from './models.ts';
import { rounded, type TargetReport } from './report.ts';
import { measureInterference, measurePrefill, measurePrefixHit } from './scenarios.ts';
import { soak } from './soak.ts';
import { mean } from './statistics.ts';
import { type Job, openAiTarget, originTarget, type Target } from './target.ts';

export interface Plan {
  readonly concurrency: readonly number[];
  /** Layers to go through: engine, origin, worker. */
  readonly via: readonly string[];
  readonly waves: number;
  readonly tokens: number;
  readonly promptTokens: number;
  readonly figures: boolean;
  /** Seconds of overload by 200 clients of two tenants; 0 = none. */
  readonly soakSeconds: number;
  /** What constraints cost those who use them and, by hostile ones, everybody else. */
  readonly constraints: boolean;
  readonly threads: number;
  /** Another server to measure with the same client. */
  readonly foreign: Target | null;
}

export interface ModelReport {
  readonly model: string;
  readonly targets: readonly TargetReport[];
  readonly figures: readonly (readonly [string, string])[];
}

/** Positions per slot in every measurement. */
const CONTEXT = 2048;

const WARM_UP_MS = 1500;

type Progress = (share: number, stage: string) => void;

/** Repeatable "random" ids in the range every vocabulary has: plain bytes and the first merges. */
export function tokenIds(seed: number, length: number): number[] {
  let state = (seed * 2654435761 + 1) >>> 0;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 32 + ((state >>> 8) % 224);
  });
}

const jobOf =
  (plan: Plan) =>
  (index: number): Job => ({ prompt: tokenIds(index, plan.promptTokens), maxTokens: plan.tokens });

/** Waves for so long that the compiler is done with what they run through. */
async function warmUp(target: Target, concurrency: number, job: (index: number) => Job) {
  const begun = performance.now();
  for (;;) {
    const wave = await measureLoad(target, concurrency, 1, job, () => undefined);
    if (performance.now() - begun > WARM_UP_MS) return wave;
  }
}

async function loads(
  target: Target,
  directory: string,
  plan: Plan,
  progress: Progress,
): Promise<TargetReport> {
  const job = jobOf(plan);
  const results: LoadResult[] = [];
  const steps = plan.concurrency.length * plan.waves;
  let done = 0;
  for (const concurrency of plan.concurrency) {
    const tick = () => progress(++done / steps, `${target.name}, concurrency ${concurrency}`);
    const { meanGenerated } = await warmUp(target, concurrency, job);
    const ceiling = (): number =>
      measureCeiling(directory, {
        batch: concurrency,
        threads: plan.threads,
        context: plan.promptTokens + Math.round(meanGenerated),
        ms: 500,
      });
    const ceilings = [ceiling()];
    const measured = await measureLoad(target, concurrency, plan.waves, job, () => {
      ceilings.push(ceiling());
      tick();
    });
    results.push({ ...measured, bareTokensPerSecond: mean(ceilings) });
  }
  return { name: target.name, loads: results };
}

async function figures(target: Target, progress: Progress) {
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
  ] as const;
}

/** Streams at once in the measurements of constraints. */
const STREAMS = 8;

/** Clients that disturb them. */
const INTRUDERS = 2;

/** What a constraint costs its own streams. */
async function constrainedFigures(target: Target, plan: Plan, progress: Progress) {
  progress(0, `${target.name}, constrained load`);
  const { plain, constrained, share } = await measureConstrained(
    target,
    STREAMS,
    2 * plan.waves,
    jobOf(plan),
  );
  return [
    [
      `${target.name}: decode tokens/s at batch ${STREAMS}, plain / constrained`,
      `${rounded(plain)} / ${rounded(constrained)} (${rounded(100 * share, 1)} %)`,
    ],
  ] as const;
}

/** What hostile constraints cost everybody else's. */
async function hostileFigures(target: Target, plan: Plan, progress: Progress) {
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
  ] as const;
}

async function residentBytes(originUrl: string): Promise<number> {
  const text = await (await fetch(new URL('/metrics', originUrl))).text();
  return Number(/^continuo_origin_resident_bytes (\S+)/m.exec(text)?.[1]);
}

/** 200 clients, of which one tenant's ten times outnumber the other's. */
async function overload(target: Target, originUrl: string, seconds: number, progress: Progress) {
  progress(0, `${target.name}, ${seconds} s of 200 clients`);
  const clients = { small: 18, large: 182 };
  const job = (tenant: string, index: number): Job => ({
    tenant,
    prompt: tokenIds(index, 64),
    maxTokens: 48,
  });
  const memory = () => residentBytes(originUrl);
  const result = await soak(target, { seconds, clients, job, refusedPauseMs: 1000, memory });
  progress(1, target.name);
  const { small = 0, large = 0 } = result.tokensByTenant;
  return [
    [`${seconds} s of 200 clients: completed / refused with 503`, `${result.completed} / ${result.refused}`],
    ['other failures', JSON.stringify(result.failures)],
    ['share of the tenant with a tenth of the clients', `${rounded((100 * small) / (small + large), 1)} %`],
    ['resident MiB, early / late', `${rounded(result.memoryMiB.early)} / ${rounded(result.memoryMiB.late)}`],
  ] as const;
}

/** Starts the product on the model and measures it layer by layer; every layer in the same run as the ceiling. */
export async function measureModel(model: BenchModel, plan: Plan, progress: Progress): Promise<ModelReport> {
  const directory = model.directory();
  const slots = Math.max(...plan.concurrency, plan.constraints ? 2 * STREAMS : 1);
  const targets: TargetReport[] = [];
  let single: ModelReport['figures'] = [];
  if (plan.via.includes('engine')) {
    const options = { directory, slots, contextLength: CONTEXT, threads: plan.threads };
    const engine = await engineTarget('engine', options);
    targets.push(await loads(engine, directory, plan, progress));
    if (plan.constraints) single = await constrainedFigures(engine, plan, progress);
    await engine.close();
  }
  if (plan.via.includes('origin') || plan.via.includes('worker')) {
    const system = await startSystem({
      CONTINUO_MODEL_DIR: directory,
      CONTINUO_MODEL_NAME: 'bench',
      CONTINUO_SLOTS: String(slots),
      CONTINUO_CONTEXT: String(CONTEXT),
      CONTINUO_THREADS: String(plan.threads),
    });
    const origin = await originTarget('origin, HTTP', { ...system.origin, model: 'bench' });
    if (plan.via.includes('origin')) {
      targets.push(await loads(origin, directory, plan, progress));
      if (plan.figures) single = [...single, ...(await figures(origin, progress))];
      if (plan.constraints) {
        single = [...single, ...(await constrainedFigures(origin, plan, progress))];
        single = [...single, ...(await hostileFigures(origin, plan, progress))];
      }
    }
    if (plan.soakSeconds > 0) {
      single = [...single, ...(await overload(origin, system.origin.url, plan.soakSeconds, progress))];
    }
    if (plan.via.includes('worker')) {
      const baseUrl = `${system.url}/v1`;
      const worker = openAiTarget('worker, SSE', { baseUrl, apiKey: system.apiKey, model: 'bench' });
      targets.push(await loads(worker, directory, plan, progress));
      if (plan.constraints) {
        single = [...single, ...(await constrainedFigures(worker, plan, progress))];
        single = [...single, ...(await hostileFigures(worker, plan, progress))];
      }
      await worker.close();
    }
    await origin.close();
    await system.stop();
  }
  if (plan.foreign) targets.push(await loads(plan.foreign, directory, plan, progress));
  return { model: model.name, targets, figures: single };
}
