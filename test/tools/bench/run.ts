import { type System, startSystem } from '../../support/system.ts';
import { measureCeiling } from './ceiling.ts';
import { engineTarget } from './engine-target.ts';
import { constrainedFigures, type Figures, hostileFigures, promptFigures, STREAMS } from './figures.ts';
import { type LoadResult, measureLoad, shareOfBare } from './load.ts';
import type { BenchModel } from './models.ts';
import { CONTEXT, jobOf, type Plan, type Progress } from './plan.ts';
import type { TargetReport } from './report.ts';
import { measureRival, type RivalLoad } from './rival.ts';
import { measureSharedPrefix, type SharedPrefixReport } from './shared-prefix.ts';
import { mean } from './statistics.ts';
import { type Job, openAiTarget, originTarget, type Target } from './target.ts';

export interface ModelReport {
  readonly model: string;
  readonly targets: readonly TargetReport[];
  readonly figures: Figures;
}

const WARM_UP_MS = 1500;

/** Runs waves until the JIT compiler has optimised the code that they use. */
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
    const { decodeRates, ...measured } = await measureLoad(target, concurrency, plan.waves, job, () => {
      ceilings.push(ceiling());
      tick();
    });
    const share = shareOfBare(decodeRates, ceilings);
    results.push({ ...measured, bareTokensPerSecond: mean(ceilings), shareOfBare: share });
  }
  return { name: target.name, loads: results };
}

/** Measures one layer. */
interface Layer {
  readonly targets: readonly TargetReport[];
  readonly figures: Figures;
}

const together = (layers: readonly Layer[]): Layer => ({
  targets: layers.flatMap(({ targets }) => targets),
  figures: layers.flatMap(({ figures }) => figures),
});

async function measureEngine(
  directory: string,
  slots: number,
  plan: Plan,
  progress: Progress,
): Promise<Layer> {
  const options = { directory, slots, contextLength: CONTEXT, threads: plan.threads };
  const engine = await engineTarget('engine', options);
  const targets = [await loads(engine, directory, plan, progress)];
  const figures = plan.constraints ? await constrainedFigures(engine, plan, progress) : [];
  await engine.close();
  return { targets, figures };
}

async function constraintFigures(target: Target, plan: Plan, progress: Progress): Promise<Figures> {
  if (!plan.constraints) return [];
  const own = await constrainedFigures(target, plan, progress);
  return [...own, ...(await hostileFigures(target, plan, progress))];
}

/** Measures the origin over HTTP and the Worker in front of it, if the plan includes them. */
async function measureSystem(
  directory: string,
  slots: number,
  plan: Plan,
  progress: Progress,
): Promise<Layer> {
  const system = await startSystem(systemOf(directory, slots, plan));
  const targets: TargetReport[] = [];
  const figures: Figures[number][] = [];
  const origin = await originTarget('origin, HTTP', { ...system.origin, model: 'bench' });
  if (plan.via.includes('origin')) {
    targets.push(await loads(origin, directory, plan, progress));
    if (plan.figures) figures.push(...(await promptFigures(origin, progress)));
    figures.push(...(await constraintFigures(origin, plan, progress)));
    if (plan.constraints) figures.push(...(await constrainedFigures(origin, plan, progress, 'bounded')));
  }
  if (plan.via.includes('worker')) {
    const baseUrl = `${system.url}/v1`;
    const worker = openAiTarget('worker, SSE', { baseUrl, apiKey: system.apiKey, model: 'bench' });
    targets.push(await loads(worker, directory, plan, progress));
    figures.push(...(await constraintFigures(worker, plan, progress)));
    await worker.close();
  }
  await origin.close();
  await system.stop();
  return { targets, figures };
}

/** Measures each layer of a model, and the bare loop in the same run. */
export async function measureModel(model: BenchModel, plan: Plan, progress: Progress): Promise<ModelReport> {
  const directory = model.directory();
  const slots = Math.max(...plan.concurrency, plan.constraints ? 2 * STREAMS : 1);
  const layers: Layer[] = [];
  if (plan.via.includes('engine')) layers.push(await measureEngine(directory, slots, plan, progress));
  if (plan.via.includes('origin') || plan.via.includes('worker')) {
    layers.push(await measureSystem(directory, slots, plan, progress));
  }
  if (plan.foreign) {
    layers.push({ targets: [await loads(plan.foreign, directory, plan, progress)], figures: [] });
  }
  return { model: model.name, ...together(layers) };
}

/**
 * Measures two systems that differ in the prefix store only, and the other server of the plan. If the plan
 * has the layer `origin` only, it measures there what the origin's own protocol can ask for.
 */
export async function measureStore(
  model: BenchModel,
  plan: Plan,
  progress: Progress,
): Promise<SharedPrefixReport> {
  const start = (mebibytes: number) =>
    startSystem({
      ...systemOf(model.directory(), Math.max(...plan.concurrency), plan),
      CONTINUO_PREFIX_CACHE_MIB: String(mebibytes),
    });
  const systems = [await start(plan.storeMiB), await start(0)] as const;
  const atOrigin = plan.via.length === 1 && plan.via[0] === 'origin';
  const targetOf = ({ url, apiKey, origin }: System, name: string) =>
    atOrigin
      ? originTarget(name, { ...origin, model: 'bench' })
      : openAiTarget(name, { baseUrl: `${url}/v1`, apiKey, model: 'bench', scores: true });
  const [withStore, without] = systems;
  const own = [await targetOf(withStore, 'with the store'), await targetOf(without, 'without')];
  const targets = plan.foreign === null ? own : [...own, plan.foreign];
  const report = await measureSharedPrefix(targets, plan, progress, atOrigin);
  for (const target of own) await target.close();
  for (const system of systems) await system.stop();
  return report;
}

/** Measures the product and the other server of the plan with the same requests, in turns. */
export async function measureBesideRival(
  model: BenchModel,
  plan: Plan,
  progress: Progress,
): Promise<{ names: string[]; loads: RivalLoad[] }> {
  if (plan.foreign === null) throw new Error('--rival needs the address of the other server: --url');
  const { url, apiKey, origin, stop } = await startSystem(
    systemOf(model.directory(), Math.max(...plan.concurrency), plan),
  );
  const own =
    plan.via.at(-1) === 'origin'
      ? await originTarget('origin, HTTP', { ...origin, model: 'bench' })
      : openAiTarget('worker, SSE', { baseUrl: `${url}/v1`, apiKey, model: 'bench' });
  const loads: RivalLoad[] = [];
  for (const counts of plan.rivalLoads)
    loads.push(...(await measureRival([own, plan.foreign], { ...plan, ...counts }, progress)));
  await own.close();
  await stop();
  return { names: [own.name, plan.foreign.name], loads };
}

const systemOf = (directory: string, slots: number, plan: Plan): Readonly<Record<string, string>> => ({
  CONTINUO_MODEL_DIR: directory,
  CONTINUO_MODEL_NAME: 'bench',
  CONTINUO_SLOTS: String(slots),
  CONTINUO_CONTEXT: String(CONTEXT),
  CONTINUO_THREADS: String(plan.threads),
});
