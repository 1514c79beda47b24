import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Table from 'cli-table3';
import { Command } from 'commander';
import { measureBatchInvariance } from '../../../origin/hub/batch-invariance.ts';
import { type ModelPlan, openModel, planModel } from '../../../origin/model/open/open-model.ts';
import { cudaFolder } from '../../../origin/model/ort/cuda-folder.ts';
import type { OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { aboveZero, list, modelOrDirectory, whole } from '../bench/arguments.ts';
import { benchModels } from '../bench/models.ts';
import { measureBandwidth } from './bandwidth.ts';
import { type DecodeRate, decodeRates } from './decode-rate.ts';
import { type Answers, runExperiments } from './experiments.ts';
import { requireCorrectLogits } from './gate.ts';
import { compareStarts, GREEDY_LENGTH, greedyStart } from './greedy-start.ts';
import { pack } from './luggage/luggage.ts';
import { type ProviderAtHand, providersAtHand } from './providers.ts';
import { runnerCases } from './runners.ts';
import { type ServedRates, servedRates } from './served-rates.ts';
import { type TransformersRates, transformersRates } from './transformers.ts';
import { writeTransformersModel } from './transformers-model.ts';

/** `npm run gpu`: runs the tests on the GPU providers, then compares speed with memory bandwidth. */

const MODELS = Object.keys(benchModels);

const program = new Command('gpu')
  .option('--providers <names>', 'comma-separated: cuda, webgpu, cpu', list(String), ['cuda', 'webgpu'])
  .option('--model <name>', `a directory, or ${MODELS.join(', ')}`, modelOrDirectory(MODELS), '450m-fp16')
  .option('--batches <numbers>', 'comma-separated', list(whole(1)), [1, 8, 32, 128])
  .option('--context <tokens>', 'tokens in every row', whole(1), 256)
  .option('--steps <number>', 'steps measured per batch', whole(1), 50)
  .option('--bandwidth <GB/s>', 'of the memory, as stated; measured when absent', aboveZero)
  .option(
    '--transformers <directory>',
    'the same weights for transformers; made for the models that have a name',
  )
  .option('--python <program>', 'with torch and transformers', 'python3')
  .option('--skip-tests', 'speed only', false)
  .option('--skip-gate', 'no comparison with float64 before the speed', false)
  .option('--experiments <words>', 'comma-separated: questions with one of these words; none', list(String), [
    '',
  ])
  .option('--out <directory>', 'where the JSON goes', '.continuo/gpu')
  .option('--pack <directory>', 'writes luggage for a machine without network instead of measuring')
  .option('--architecture <number>', 'of the card that the luggage is for; 90 = Hopper', whole(1), 90);

interface Options {
  readonly providers: string[];
  readonly model: string;
  readonly batches: number[];
  readonly context: number;
  readonly steps: number;
  readonly bandwidth?: number;
  readonly transformers?: string;
  readonly python: string;
  readonly skipTests: boolean;
  readonly skipGate: boolean;
  readonly experiments: string[];
  readonly out: string;
  readonly pack?: string;
  readonly architecture: number;
}

interface Report {
  readonly provider: string;
  /** Largest difference of a logit from float64 over all shapes of attention; null = not compared. */
  readonly worstDifference: number | null;
  readonly summary: string;
  readonly warning: string | null;
  readonly bandwidth: number;
  readonly rates: readonly DecodeRate[];
  /** Whether rows of a batch have the bits of a single row; if not, the largest difference of a logit. */
  readonly batchInvariance: string;
  readonly greedy: readonly number[];
  /** Null = not measured. */
  readonly served: ServedRates | null;
  /** Null = not yet asked. */
  readonly experiments: Answers | null;
}

const now = () => performance.now();

const directoryOf = ({ model }: Options): string => benchModels[model]?.directory() ?? model;

/** Bytes of the table of token vectors, of which a step reads a few rows. Its type is that of the KV. */
function embeddingBytes({ graph, decoder }: ModelPlan): number {
  const { vocabularySize, kvType } = decoder;
  const tables = graph.nodes.flatMap(({ operator, inputs }) =>
    operator === 'Gather' ? (graph.initializers.get(inputs[0] ?? '')?.dimensions ?? []) : [],
  );
  const width = tables[tables.indexOf(vocabularySize) + 1] ?? 0;
  return tables.includes(vocabularySize) ? vocabularySize * width * (kvType === 'float16' ? 2 : 4) : 0;
}

/** @param save takes what has been measured so far */
async function measure(
  { device, provider }: ProviderAtHand,
  options: Options,
  save: (report: Report) => void,
): Promise<Report> {
  const { batches, context, steps } = options;
  const gate = () => requireCorrectLogits(runnerCases().find(({ name }) => name === provider)!);
  const worstDifference = options.skipGate ? null : await gate();
  const directory = directoryOf(options);
  const slots = Math.max(...batches);
  const contextLength = Math.max(context + steps, slots, GREEDY_LENGTH) + 16;
  const size = { directory, slots, contextLength, kvLimitBytes: null };
  const plan = planModel(size);
  const { layout } = plan;
  const weightBytes = plan.weightBytes - embeddingBytes(plan);
  const ortDevice: OrtDevice =
    provider === 'cuda' ? { provider, deviceId: 0, memoryBytes: null } : { provider };
  const stated = options.bandwidth;
  const bandwidth = stated === undefined ? measureBandwidth(ortDevice, now) : stated * 1e9;
  let report: Omit<Report, 'experiments' | 'served'>;
  const { runner, summary, warning } = await openModel({ ...size, threads: 2, device });
  try {
    const { positionBytes } = layout;
    const rated = { batches, context, steps, weightBytes, positionBytes, bandwidth, now };
    const rates = await decodeRates(runner, rated);
    const greedy = await greedyStart(runner);
    const prompt = Array.from({ length: slots + 8 }, (_, at) => (at * 17 + 3) % runner.shape.vocabularySize);
    const { identical, maxDifference } = await measureBatchInvariance(runner, prompt, 2);
    const batchInvariance = identical
      ? 'rows of a batch are bit-identical to single rows'
      : `rows differ by up to ${maxDifference}`;
    report = { provider, worstDifference, summary, warning, bandwidth, rates, batchInvariance, greedy };
  } finally {
    runner.dispose();
  }
  save({ ...report, served: null, experiments: null });
  const load = { batches, promptTokens: 64, tokens: 2 * steps };
  const served = existsSync(path.join(directory, 'tokenizer.json'))
    ? await servedRates({ directory, device, ...load })
    : null;
  save({ ...report, served, experiments: null });
  const onAnswers = (experiments: Answers) => save({ ...report, served, experiments });
  const setting = { provider, device, directory, maxRows: slots, now };
  const experiments = await runExperiments(setting, options.experiments, onAnswers);
  return { ...report, served, experiments };
}

function print(report: Report, transformers: TransformersRates | null): void {
  const { provider, summary, bandwidth, batchInvariance, rates, greedy } = report;
  const shown = new Table({ head: ['batch', 'tokens/s', 'bandwidth allows', 'share', 'transformers'] });
  for (const { batch, tokensPerSecond, limit } of rates) {
    const other = transformers?.rates[batch];
    const share = `${((100 * tokensPerSecond) / limit).toFixed(1)} %`;
    shown.push([batch, tokensPerSecond.toFixed(0), limit.toFixed(0), share, other?.toFixed(0) ?? '–']);
  }
  console.log(`\n${provider}: ${summary}; ${report.warning ?? 'no warning'}`);
  console.log(`${(bandwidth / 1e9).toFixed(1)} GB/s; ${batchInvariance}`);
  console.log(shown.toString());
  if (transformers !== null && transformers.greedy.length > 0)
    console.log(`${transformers.device}: ${compareStarts(greedy, transformers.greedy)}`);
  for (const [question, answer] of Object.entries({ ...report.served, ...report.experiments })) {
    const answers = Object.entries(answer).map(([name, value]) => `${name}: ${value}`);
    console.log(`\n${question}\n  ${answers.join('\n  ')}`);
  }
}

/** Measures transformers. If that is not possible, adds the reason to `notRun` and returns null. */
function measureTransformers(options: Options, notRun: string[]): TransformersRates | null {
  const { transformers, model, python, batches, context, steps } = options;
  if (transformers === undefined && benchModels[model] === undefined) {
    notRun.push('transformers: no --transformers directory was given');
    return null;
  }
  const made = mkdtempSync(path.join(tmpdir(), 'continuo-transformers-'));
  try {
    if (benchModels[model]?.convertible === false) {
      copyFileSync(path.join(directoryOf(options), 'config.json'), path.join(made, 'config.json'));
    } else if (transformers === undefined) writeTransformersModel(directoryOf(options), made);
    const directory = transformers ?? made;
    const found = transformersRates({ python, directory, batches, context, steps });
    if (typeof found !== 'string') return found;
    notRun.push(`transformers: ${found}`);
    return null;
  } finally {
    rmSync(made, { recursive: true });
  }
}

async function main(): Promise<void> {
  const options = program.parse().opts<Options>();
  if (options.pack !== undefined) {
    console.log(pack(options.pack, options.architecture).join('\n'));
    return;
  }
  const notRun: string[] = [];
  const known = providersAtHand();
  const unknown = options.providers.find((name) => !known.some(({ provider }) => provider === name));
  if (unknown !== undefined) program.error(`--providers: ${unknown} is none of cuda, webgpu, cpu`);
  const asked = known.filter(({ provider }) => options.providers.includes(provider));
  for (const { provider, absent } of asked) if (absent !== null) notRun.push(`${provider}: ${absent}`);
  const here = asked.filter(({ absent }) => absent === null);
  if (!options.skipTests) {
    const vitest = path.resolve('node_modules/vitest/vitest.mjs');
    // Tests have another home directory.
    const env = { ...process.env, ORT_CUDA_PATH: cudaFolder(process.env) };
    const tests = spawnSync(process.execPath, [vitest, 'run', 'test/tools/gpu'], { stdio: 'inherit', env });
    if (tests.status !== 0) process.exitCode = 1;
  }
  let transformers: TransformersRates | null = null;
  const reports: Report[] = [];
  mkdirSync(options.out, { recursive: true });
  const file = path.join(options.out, 'report.json');
  // After each measurement, because the time on a borrowed machine can end at any moment.
  const write = (unfinished: readonly Report[] = []) => {
    const all = { reports: [...reports, ...unfinished], transformers, notRun };
    writeFileSync(`${file}.new`, `${JSON.stringify(all, null, 2)}\n`);
    renameSync(`${file}.new`, file);
  };
  write();
  if (here.length === 0) process.exitCode = 1;
  for (const one of here) {
    try {
      const report = await measure(one, options, (unfinished) => write([unfinished]));
      reports.push(report);
    } catch (error) {
      notRun.push(`${one.provider}: ${(error as Error).message}`);
      process.exitCode = 1;
    }
    write();
  }
  if (here.length > 0) transformers = measureTransformers(options, notRun);
  write();
  for (const report of reports) print(report, transformers);
  for (const line of notRun) console.log(`not run: ${line}`);
  console.log(`written to ${file}`);
}

await main();
