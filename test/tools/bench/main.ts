import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { SingleBar } from 'cli-progress';
import { Command } from 'commander';
import { ARCHITECTURES, type ArchitectureFigures, measureArchitecture } from './architectures/measure.ts';
import { REPRESENTATIVE } from './architectures/published.ts';
import {
  address,
  directory,
  header,
  list,
  modelOrDirectory,
  oneOf,
  tokenCounts,
  whole,
} from './arguments.ts';
import { measureBatch } from './batch.ts';
import { measureBrowser } from './browser.ts';
import { measureTasks } from './browser-tasks.ts';
import { closedTable, measureClosedLoops } from './closed-loop.ts';
import { type Gateway, measureAgainst } from './edge/against.ts';
import { measureEdge } from './edge/edge.ts';
import { measureSchemas } from './grammar/schemas.ts';
import { type BenchModel, benchModels } from './models.ts';
import { LAYERS, type Plan, type Progress, type TokenCounts } from './plan.ts';
import { againstTable, architectureTable, edgeTables, failures, figureTable, loadTable } from './report.ts';
import { rivalTable } from './rival.ts';
import { type ModelReport, measureBesideRival, measureModel, measureStore } from './run.ts';
import { PROMPTS, sharedPrefixTable } from './shared-prefix.ts';
import { rounded } from './statistics.ts';
import { openAiTarget, type Target } from './target.ts';
import { measureUsageYear } from './usage-year.ts';

/** `npm run bench`: measures each layer against the bare decode loop. Run it on an idle machine. */

const MODELS = Object.keys(benchModels);

const viaOf = (text: string): string[] => (text === 'none' ? [] : list(oneOf(LAYERS))(text));

const architecturesOf = (text: string): string[] =>
  text === 'all' ? [...REPRESENTATIVE] : list(oneOf(ARCHITECTURES))(text);

const program = new Command('bench')
  .description(
    'Measures tokens/s, time to first token and inter-token latency, and the bare decode loop in the same run.',
  )
  .option(
    '--models <names>',
    `comma-separated: ${MODELS.join(', ')}, or a directory`,
    list(modelOrDirectory(MODELS)),
    ['built-in'],
  )
  .option('--concurrency <numbers>', 'comma-separated', list(whole(1)), [1, 2, 4, 8, 16, 32])
  .option('--via <layers>', `comma-separated: ${LAYERS.join(', ')}; or none`, viaOf, LAYERS)
  .option('--waves <number>', 'waves of requests per concurrency', whole(1), 5)
  .option('--tokens <number>', 'tokens generated per request', whole(1), 256)
  .option('--prompt <number>', 'tokens per prompt', whole(1), 64)
  .option('--threads <number>', 'threads of one model run', whole(1), availableParallelism())
  .option('--quick', 'skip the single figures (prefill, prefix hit, interference)', false)
  .option('--constraints', 'also measure constrained streams, and streams during hostile grammars', false)
  .option(
    '--schemas <directory>',
    'measure only the schemas of a directory in the layout of MaskBench',
    directory,
  )
  .option('--vocabulary <directory>', 'with --schemas: a model directory whose tokenizer is used', directory)
  .option('--open', 'with open_objects in --schemas', false)
  .option('--any', 'with any_key_order in --schemas', false)
  .option(
    '--batch <lines>',
    'measure only batches of so many lines, and small requests beside them',
    whole(1),
  )
  .option('--usage', 'measure only questions about a year of usage of 100 keys', false)
  .option(
    '--browser',
    'measure only a model in the page: its thread beside the bare loop, and tasks of the main thread',
    false,
  )
  .option('--edge', 'measure only what the Worker adds to an origin without a model', false)
  .option('--against <base>', 'with --edge: compare with a gateway, e.g. http://127.0.0.1:8787/v1', address)
  .option('--header <header>', "with --against: 'name: value' of each request; may be repeated", header)
  .option('--upstream-port <number>', 'with --against: port of the upstream behind it', whole(1), 9300)
  .option(
    '--shared-prefix',
    'measure only prompts with shared prefixes, with the prefix store and without',
    false,
  )
  .option(
    '--store <mebibytes>',
    'prefix store of --shared-prefix; the default is full after the first round of the built-in model',
    whole(1),
    128,
  )
  .option('--prompts <number>', 'prompts of each workload of --shared-prefix', whole(1), PROMPTS)
  .option(
    '--architectures <names>',
    `measure only serving published sizes with random weights: all = ${REPRESENTATIVE.join(', ')}; or names of docs/base-models.md`,
    architecturesOf,
  )
  .option(
    '--url <base>',
    'also measure an OpenAI-compatible server, e.g. http://127.0.0.1:8080/v1; with --via none only it, in closed loops',
    address,
  )
  .option('--rival', 'measure only a layer (the last of --via) and the server of --url, in turns', false)
  .option(
    '--loads <sizes>',
    'with --rival: tokens of prompts and answers, e.g. 155/96,21/256',
    list(tokenCounts),
  )
  .option('--url-model <name>', 'its model name', 'default')
  .option('--url-key <key>', 'its API key', 'none')
  .option('--out <directory>', 'directory for the JSON files', '.continuo/bench');

interface Options {
  readonly models: string[];
  readonly concurrency: number[];
  readonly via: readonly string[];
  readonly waves: number;
  readonly tokens: number;
  readonly prompt: number;
  readonly threads: number;
  readonly quick: boolean;
  readonly constraints: boolean;
  readonly schemas?: string;
  readonly vocabulary?: string;
  readonly open: boolean;
  readonly any: boolean;
  readonly batch?: number;
  readonly usage: boolean;
  readonly browser: boolean;
  readonly edge: boolean;
  readonly against?: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly upstreamPort: number;
  readonly sharedPrefix: boolean;
  readonly store: number;
  readonly prompts: number;
  readonly architectures?: string[];
  readonly url?: string;
  readonly rival: boolean;
  readonly loads?: readonly TokenCounts[];
  readonly urlModel: string;
  readonly urlKey: string;
  readonly out: string;
}

function modelNamed(name: string): BenchModel {
  return benchModels[name] ?? { name: path.basename(name), directory: () => name };
}

function print(report: ModelReport): void {
  console.log(`\n${report.model}\n${loadTable(report.targets)}`);
  for (const line of failures(report.targets)) console.log(line);
  if (report.figures.length > 0) console.log(figureTable(report.figures));
}

/** Measures under a bar of its progress. */
async function measured<T>(name: string, measure: (progress: Progress) => Promise<T>): Promise<T> {
  const bar = new SingleBar({ format: `${name} {bar} {percentage}% {stage}`, clearOnComplete: true });
  bar.start(1, 0, { stage: '' });
  const result = await measure((share, stage) => bar.update(share, { stage }));
  bar.stop();
  return result;
}

function save(directory: string, name: string, report: unknown): string {
  const file = path.join(directory, name);
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  return file;
}

async function edge(directory: string): Promise<void> {
  const report = await measured('edge', measureEdge);
  console.log(`\n${edgeTables(report)}\n${save(directory, 'edge.json', report)}`);
}

async function against(gateway: Gateway, port: number, waves: number, directory: string): Promise<void> {
  console.log(`The gateway ${gateway.url} must reach the upstream http://127.0.0.1:${port}/v1.`);
  const loads = await measured('edge', (progress) => measureAgainst(gateway, port, waves, progress));
  console.log(`\n${againstTable(loads)}\n${save(directory, 'against.json', loads)}`);
}

async function sharedPrefix(model: BenchModel, plan: Plan, directory: string): Promise<void> {
  const report = await measured(model.name, (progress) => measureStore(model, plan, progress));
  console.log(`\n${model.name}\n${sharedPrefixTable(report)}`);
  console.log(save(directory, `${model.name}-shared-prefix.json`, report));
}

async function architectures(names: readonly string[], directory: string): Promise<void> {
  const figures: ArchitectureFigures[] = [];
  let file = '';
  for (const name of names) {
    figures.push(await measureArchitecture(name));
    // Each model takes minutes, so an interrupted run keeps what it has measured.
    file = save(directory, 'architectures.json', figures);
  }
  console.log(`${architectureTable(figures)}\n${file}`);
}

async function rival(model: BenchModel, plan: Plan, directory: string): Promise<void> {
  const { names, loads } = await measured(model.name, (progress) =>
    measureBesideRival(model, plan, progress),
  );
  console.log(`\n${model.name}\n${rivalTable(names, loads)}`);
  console.log(save(directory, `${model.name}-rival.json`, { names, loads }));
}

async function closedLoops(target: Target, plan: Plan, directory: string): Promise<void> {
  const loads = await measured(target.name, (progress) => measureClosedLoops(target, plan, progress));
  console.log(`\n${closedTable(loads)}\n${save(directory, 'closed-loops.json', loads)}`);
}

async function main(): Promise<void> {
  const options = program.parse().opts<Options>();
  if (options.schemas !== undefined) {
    const style = { openObjects: options.open, anyKeyOrder: options.any };
    const { schemas, vocabulary } = options;
    const python = process.env.TEST_GRAMMAR_PYTHON;
    return console.log(await measureSchemas({ directory: schemas, style, vocabulary, python }));
  }
  mkdirSync(options.out, { recursive: true });
  if (options.against !== undefined) {
    const gateway = { url: options.against, headers: options.header ?? {} };
    return against(gateway, options.upstreamPort, options.waves, options.out);
  }
  const { batch: lines } = options;
  if (lines !== undefined)
    return console.log(figureTable(await measured('batch', (progress) => measureBatch(lines, progress))));
  if (options.usage) return console.log(figureTable(await measured('usage', measureUsageYear)));
  if (options.browser) {
    for (const { directory } of options.models.map(modelNamed)) {
      const rates = await measureBrowser(directory(), options.tokens, options.waves);
      console.log(figureTable([...rates, ...(await measureTasks(directory(), options.tokens))]));
    }
    return;
  }
  if (options.edge) return edge(options.out);
  if (options.architectures !== undefined) return architectures(options.architectures, options.out);
  const plan: Plan = {
    concurrency: options.concurrency,
    via: options.via,
    waves: options.waves,
    tokens: options.tokens,
    promptTokens: options.prompt,
    rivalLoads: options.loads ?? [{ promptTokens: options.prompt, tokens: options.tokens }],
    figures: !options.quick,
    constraints: options.constraints,
    storeMiB: options.store,
    prompts: options.prompts,
    threads: options.threads,
    foreign: options.url
      ? openAiTarget(options.url, {
          baseUrl: options.url,
          apiKey: options.urlKey,
          model: options.urlModel,
          reconnects: true,
        })
      : null,
  };
  if (options.sharedPrefix) {
    for (const model of options.models.map(modelNamed)) await sharedPrefix(model, plan, options.out);
    return plan.foreign?.close();
  }
  if (options.rival) {
    for (const model of options.models.map(modelNamed)) await rival(model, plan, options.out);
    return plan.foreign?.close();
  }
  if (plan.foreign && plan.via.length === 0) {
    await closedLoops(plan.foreign, plan, options.out);
    return plan.foreign.close();
  }
  const reports: ModelReport[] = [];
  for (const model of options.models.map(modelNamed)) {
    const report = await measured(model.name, (progress) => measureModel(model, plan, progress));
    print(report);
    reports.push(report);
  }
  await plan.foreign?.close();
  const file = save(options.out, 'bench.json', reports);
  console.log(`\n${rounded(reports.length)} report(s): ${file}`);
}

await main();
