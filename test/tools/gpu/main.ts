import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Table from 'cli-table3';
import { Command } from 'commander';
import { measureBatchInvariance } from '../../../origin/hub/check/batch-invariance.ts';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import { ElementType } from '../../../origin/model/onnx/onnx-graph.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { type ModelPlan, planModel } from '../../../origin/model/open/plan-model.ts';
import { cudaFolder } from '../../../origin/model/ort/cuda-folder.ts';
import type { OrtDevice } from '../../../origin/model/ort/ort-device.ts';
import { aboveZero, list, modelOrDirectory, oneOf, whole } from '../bench/arguments.ts';
import { benchModels } from '../bench/models.ts';
import { measureBandwidth } from './bandwidth.ts';
import { type DecodeRate, decodeRates } from './decode-rate.ts';
import { type Answer, type Answers, runExperiments } from './experiments.ts';
import { type Differences, requireCorrectLogits } from './gate.ts';
import { compareStarts, GREEDY_LENGTH, greedyStart } from './greedy-start.ts';
import { pack } from './luggage/luggage.ts';
import { runPlan } from './plan.ts';
import { type ProviderAtHand, providersAtHand } from './providers.ts';
import { filesOf, RIVALS } from './rivals/rivals.ts';
import { runnerCases, withNumbers } from './runners.ts';
import { type Rates, rivalRates, SERVED } from './served-rates.ts';
import { type TransformersRates, transformersRates } from './transformers.ts';

/** `npm run gpu`: runs the tests on the GPU providers, then compares speed with memory bandwidth. */

const MODELS = Object.keys(benchModels);
/** In order. The gate compares logits with float64 before anything is measured. */
const PARTS = ['tests', 'states', 'gate', 'rates', 'questions', 'transformers', 'rivals'] as const;
const STATES = 'test/tools/gpu/states.test.ts';

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
  .option('--parts <words>', `comma-separated: ${PARTS.join(', ')}`, list(String), [...PARTS])
  .option('--experiments <words>', 'comma-separated: questions with one of these words; none', list(String), [
    '',
  ])
  .option('--out <directory>', 'where the JSON goes', '.continuo/gpu')
  .option('--plan <seconds>', 'all stages of a day with a card, as far as they get in this time', whole(1))
  .option('--stages <words>', 'comma-separated: of the plan, those with one of these words', list(String), [
    '',
  ])
  .option(
    '--rehearse <name>',
    'a small model in place of those of the plan; tests are only listed',
    modelOrDirectory(MODELS),
  )
  .option('--pack <directory>', 'writes luggage for a machine without network instead of measuring')
  .option(
    '--rival <names>',
    `comma-separated: ${Object.keys(RIVALS).join(', ')}; with --pack, only their parts are written`,
    list(oneOf(Object.keys(RIVALS))),
  )
  .option('--rivals <directory>', 'where the files of rivals are', '.continuo/rivals')
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
  readonly parts: string[];
  readonly experiments: string[];
  readonly out: string;
  readonly plan?: number;
  readonly stages: string[];
  readonly rehearse?: string;
  readonly pack?: string;
  readonly rival?: string[];
  readonly rivals: string;
  readonly architecture: number;
}

interface Report {
  readonly provider: string;
  /** Largest difference of a logit from float64 over all shapes of attention; null = not compared. */
  readonly worstDifference: number | null;
  /** The same beside a KV cache that is not rounded: what 8 bits of it lose. */
  readonly lossOfKv: number | null;
  readonly summary: string;
  readonly warning: string | null;
  readonly bandwidth: number;
  /** Empty = not measured. */
  readonly rates: readonly DecodeRate[];
  /** Whether rows of a batch have the bits of a single row; if not, the largest difference of a logit. */
  readonly batchInvariance: string;
  readonly greedy: readonly number[];
  /** Null = not yet asked. */
  readonly experiments: Answers | null;
}

const now = () => performance.now();

const directoryOf = ({ model }: Options): string => benchModels[model]?.directory() ?? model;

/** Bytes of an element by its type in ONNX. */
const ELEMENT_BYTES = new Map<number, number>([
  [ElementType.float32, 4],
  [ElementType.float16, 2],
  [ElementType.bfloat16, 2],
]);

/** Bytes of the matrices that a step multiplies by; one that several layers share counts for each. */
function readBytes({ graph }: ModelPlan): number {
  const sizeOf = (name: string) => {
    const { dimensions = [], elementType = 0 } = graph.initializers.get(name) ?? {};
    if (dimensions.length === 0) return 0;
    return dimensions.reduce((product, size) => product * size, ELEMENT_BYTES.get(elementType) ?? 1);
  };
  const products = graph.nodes.filter(({ operator }) => /MatMul|Gemm/.test(operator));
  return products.flatMap(({ inputs }) => inputs.map(sizeOf)).reduce((sum, bytes) => sum + bytes, 0);
}

type Measured = Omit<Report, 'experiments'>;

const NOTHING: Measured = {
  provider: '',
  worstDifference: null,
  lossOfKv: null,
  summary: 'not measured',
  warning: null,
  bandwidth: 0,
  rates: [],
  batchInvariance: 'rows not compared',
  greedy: [],
};

async function measureRates(
  device: DeviceSettings,
  provider: ProviderAtHand['provider'],
  options: Options,
): Promise<Omit<Measured, 'provider' | 'worstDifference' | 'lossOfKv'>> {
  const { batches, context, steps } = options;
  const slots = Math.max(...batches);
  const contextLength = Math.max(context + steps, slots, GREEDY_LENGTH) + 16;
  const size = { directory: directoryOf(options), slots, contextLength, kvLimitBytes: null };
  const plan = planModel(size);
  const { positionBytes } = plan.layout;
  const ortDevice: OrtDevice =
    provider === 'cuda' ? { provider, deviceId: 0, memoryBytes: null } : { provider };
  const stated = options.bandwidth;
  const bandwidth = stated === undefined ? measureBandwidth(ortDevice, now) : stated * 1e9;
  const { runner, summary, warning } = await openModel({ ...size, threads: 2, device });
  try {
    const rated = { batches, context, steps, weightBytes: readBytes(plan), positionBytes, bandwidth, now };
    const rates = await decodeRates(runner, rated);
    const greedy = await greedyStart(runner);
    const prompt = Array.from({ length: slots + 8 }, (_, at) => (at * 17 + 3) % runner.shape.vocabularySize);
    const { identical, maxDifference } = await measureBatchInvariance(runner, prompt, 2);
    const batchInvariance = identical
      ? 'rows of a batch are bit-identical to single rows'
      : `rows differ by up to ${maxDifference}`;
    return { summary, warning, bandwidth, rates, batchInvariance, greedy };
  } finally {
    runner.dispose();
  }
}

/** Small networks with the numbers of the model. WebGPU has float32 only, and matrices are not quantized. */
async function gate(provider: string, { model }: Options): Promise<Differences> {
  const runner = runnerCases().find(({ name }) => name === provider)!;
  const { numbers } = benchModels[model] ?? {};
  const same = numbers === undefined || numbers.precision === 'float32' || provider === 'webgpu';
  return await requireCorrectLogits(same ? runner : withNumbers(runner, numbers));
}

/** @param save takes what has been measured so far */
async function measure(
  { device, provider }: ProviderAtHand,
  options: Options,
  save: (report: Report) => void,
): Promise<Report> {
  const { batches } = options;
  const does = (part: (typeof PARTS)[number]) => options.parts.includes(part);
  const gated = does('gate') ? await gate(provider, options) : null;
  const directory = directoryOf(options);
  const slots = Math.max(...batches);
  const { worst: worstDifference = null, unrounded: lossOfKv = null } = gated ?? {};
  let report = { ...NOTHING, provider, worstDifference, lossOfKv };
  if (does('rates')) report = { ...report, ...(await measureRates(device, provider, options)) };
  save({ ...report, experiments: null });
  const onAnswers = (experiments: Answers) => save({ ...report, experiments });
  const setting = { provider, device, directory, batches, maxRows: slots, now };
  const words = does('questions') ? options.experiments : [];
  const experiments = await runExperiments(setting, words, onAnswers);
  return { ...report, experiments };
}

function print(report: Report, transformers: TransformersRates | null): void {
  if (report.rates.length > 0) printRates(report, transformers);
  for (const [question, answer] of Object.entries(report.experiments ?? {}))
    printAnswer(`${report.provider}, ${question}`, answer);
}

function printAnswer(title: string, answer: Answer): void {
  const answers = Object.entries(answer).map(([name, value]) => `${name}: ${value}`);
  console.log(`\n${title}\n  ${answers.join('\n  ')}`);
}

function printRates(report: Report, transformers: TransformersRates | null): void {
  const { provider, summary, bandwidth, batchInvariance, rates, greedy } = report;
  const shown = new Table({ head: ['batch', 'tokens/s', 'bandwidth allows', 'share', 'transformers'] });
  for (const { batch, tokensPerSecond, limit } of rates) {
    const other = transformers?.rates[batch];
    const share = `${((100 * tokensPerSecond) / limit).toFixed(1)} %`;
    shown.push([batch, tokensPerSecond.toFixed(0), limit.toFixed(0), share, other?.toFixed(0) ?? '–']);
  }
  console.log(`\n${provider}: ${summary}; ${report.warning ?? 'no warning'}`);
  const { worstDifference, lossOfKv } = report;
  if (worstDifference !== null)
    console.log(`gate: ${worstDifference} from float64; ${lossOfKv} from float64 with its KV not rounded`);
  console.log(`${(bandwidth / 1e9).toFixed(1)} GB/s; ${batchInvariance}`);
  console.log(shown.toString());
  if (transformers !== null && transformers.greedy.length > 0)
    console.log(`${transformers.device}: ${compareStarts(greedy, transformers.greedy)}`);
}

/** Measures rivals whose files are here. Names the others in `notRun`, and those that fail. */
async function measureRivals(
  options: Options,
  notRun: string[],
  onRates: (name: string, rates: Rates) => void,
): Promise<void> {
  const { rival = Object.keys(RIVALS), rivals, python, batches } = options;
  for (const name of rival) {
    const files = filesOf(rivals, name);
    if (files === null) {
      notRun.push(`${name}: its files are not in ${rivals}`);
      continue;
    }
    const setting = { files, python, batches, directory: directoryOf(options), ...SERVED };
    try {
      await rivalRates(RIVALS[name]!, setting, (rates) => onRates(name, rates));
    } catch (error) {
      notRun.push(`${name}: ${(error as Error).message}`);
      process.exitCode = 1;
    }
  }
}

async function main(): Promise<void> {
  const options = program.parse().opts<Options>();
  if (options.pack !== undefined) {
    const assembled = (options.rival ?? []).map((name) => [name, RIVALS[name]!.assemble] as const);
    const lines = await pack(options.pack, options.architecture, Object.fromEntries(assembled));
    console.log(lines.join('\n'));
    return;
  }
  if (options.plan !== undefined) {
    process.exitCode = await runPlan({ ...options, seconds: options.plan });
    return;
  }
  const notRun: string[] = [];
  const known = providersAtHand();
  const unknown = options.providers.find((name) => !known.some(({ provider }) => provider === name));
  if (unknown !== undefined) program.error(`--providers: ${unknown} is none of cuda, webgpu, cpu`);
  const asked = known.filter(({ provider }) => options.providers.includes(provider));
  for (const { provider, absent } of asked) if (absent !== null) notRun.push(`${provider}: ${absent}`);
  const here = asked.filter(({ absent }) => absent === null);
  for (const part of ['tests', 'states'].filter((name) => options.parts.includes(name))) {
    const vitest = path.resolve('node_modules/vitest/vitest.mjs');
    // Tests have another home directory.
    const env = { ...process.env, ORT_CUDA_PATH: cudaFolder(process.env) };
    const results = `--outputFile.json=${path.join(options.out, `${part}.json`)}`;
    // Where a rehearsal takes place, the tests run by themselves.
    const how = options.rehearse ? ['list'] : ['run', '--reporter=default', '--reporter=json', results];
    const which = part === 'states' ? [STATES] : ['--exclude', STATES];
    const args = [vitest, ...how, ...which, '--config', 'test/tools/gpu/vitest.config.ts'];
    const tests = spawnSync(process.execPath, args, { stdio: 'inherit', env });
    if (tests.status !== 0) process.exitCode = 1;
  }
  let transformers: TransformersRates | null = null;
  const rivals: Record<string, Rates> = {};
  const reports: Report[] = [];
  mkdirSync(options.out, { recursive: true });
  const file = path.join(options.out, 'report.json');
  // After each measurement, because the time on a borrowed machine can end at any moment.
  const write = (unfinished: readonly Report[] = []) => {
    const all = { reports: [...reports, ...unfinished], transformers, rivals, notRun };
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
      notRun.push(`${one.provider}: ${(error as Error).stack}`);
      process.exitCode = 1;
    }
    write();
  }
  if (here.length > 0 && options.parts.includes('transformers')) {
    const found = transformersRates({ ...options, directory: options.transformers });
    if (typeof found === 'string') notRun.push(`transformers: ${found}`);
    else transformers = found;
  }
  if (options.parts.includes('rivals')) {
    await measureRivals(options, notRun, (name, rates) => {
      rivals[name] = rates;
      write();
    });
  }
  write();
  for (const report of reports) print(report, transformers);
  for (const [name, rates] of Object.entries(rivals)) printAnswer(name, rates);
  for (const line of notRun) console.log(`not run: ${line}`);
  console.log(`written to ${file}`);
}

await main();
