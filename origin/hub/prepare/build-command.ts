import { homedir } from 'node:os';
import path from 'node:path';
import { BLOCK_SIZES, DEFAULT_BLOCK_SIZE, type WeightPrecision } from '@continuo/export/graph/linear.ts';
import { type Command, Option } from 'commander';
import { readModelSettings } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import { BUILT_PRECISIONS } from '../../model/config/model-files.ts';
import { withExamples } from '../../terminal/program.ts';
import { byteSize, createProgress } from '../../terminal/progress.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { commandConnection, throughProxy } from '../fetch/command-connection.ts';
import { HubClient } from '../fetch/hub-client.ts';
import { readHubSettings } from '../fetch/hub-settings.ts';
import { DEFAULT_REVISION, requireRevision } from '../fetch/names.ts';
import { type PreparedModel, prepareModel, weightPrecision } from './prepare-model.ts';

/** `continuo model build`, and the options that it shares with `continuo serve`. */

export interface BuildOptions {
  readonly precision?: string;
  readonly blockSize: string;
  readonly kv?: string;
  readonly adapter?: string;
  readonly revision: string;
  readonly out?: string;
}

/** Adds the options that say what is built. */
export const withBuildOptions = (command: Command): Command =>
  command
    .addOption(
      new Option('--precision <name>', 'default: q8 on a CPU, fp16 on a device; bf16: CUDA').choices(
        BUILT_PRECISIONS,
      ),
    )
    .addOption(
      new Option('--block-size <values>', 'weights with one scale; larger is faster and less exact')
        .choices(BLOCK_SIZES.map(String))
        .default(String(DEFAULT_BLOCK_SIZE)),
    )
    .addOption(new Option('--kv <type>', 'KV cache in 8 bits; default: as the activations').choices(['int8']))
    .option('--adapter <directory>', 'LoRA adapter (PEFT) to merge into the weights')
    .option('--revision <name>', 'branch, tag or commit of a repository', DEFAULT_REVISION)
    .addHelpText(
      'after',
      '\nReads HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, XDG_CACHE_HOME and HTTPS_PROXY.',
    );

export function addBuildCommand(model: Command, terminal: Terminal, environment: Environment): void {
  const build = model
    .command('build <model>')
    .description('build a graph from safetensors or GGUF: a directory, a .gguf file or owner/name[:variant]')
    .option('--out <directory>', 'directory to create; default: one in the cache of built models');
  withExamples(
    withBuildOptions(build),
    'continuo model build HuggingFaceTB/SmolLM2-135M --precision q4',
    'continuo model build ./my-finetune --out ./my-model',
  ).action(async (name: string, options: BuildOptions) => {
    const prepared = await prepareForCommand(name, options, terminal, environment);
    terminal.print(`CONTINUO_MODEL_DIR=${prepared.directory}`);
    if (prepared.variant !== null) terminal.print(`CONTINUO_MODEL_VARIANT=${prepared.variant}`);
  });
}

/** Fetches and builds a model with progress on stderr. */
export async function prepareForCommand(
  name: string,
  options: BuildOptions,
  terminal: Terminal,
  environment: Environment,
): Promise<PreparedModel> {
  const progress = createProgress(terminal.stderr);
  const settings = readHubSettings(environment, homedir());
  const client = new HubClient({ settings, ...commandConnection(progress) });
  const { adapter, kv, out, revision } = options;
  const quantizedKv = kv === undefined ? kv : deviceOf(environment);
  const blockSize = BLOCK_SIZES.find((size) => String(size) === options.blockSize) ?? DEFAULT_BLOCK_SIZE;
  const request = {
    name,
    adapter,
    out,
    blockSize,
    quantizedKv,
    precision: precisionOf(options, environment),
  };
  const prepared = await throughProxy(() =>
    prepareModel(
      { ...request, revision: requireRevision(revision) },
      {
        client,
        progress,
        cache: settings.cache,
        builds: buildsOf(environment),
        availableMemory: () => process.availableMemory(),
      },
    ),
  );
  for (const line of reportOf(prepared)) progress.note(line);
  return prepared;
}

/** The directory of built models. */
const buildsOf = ({ XDG_CACHE_HOME }: Environment): string =>
  path.join(XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'continuo', 'models');

const deviceOf = (environment: Environment) => readModelSettings(environment).model.engine.device;

function precisionOf({ precision }: BuildOptions, environment: Environment): WeightPrecision {
  const { provider } = deviceOf(environment);
  return weightPrecision(precision ?? '') ?? (provider === 'cpu' ? 'int8' : 'fp16');
}

function reportOf({ id, directory, built }: PreparedModel): string[] {
  if (built === null) return [`${id} is ready in ${directory}`];
  const { modelType, precision, parameters, dataBytes, unusedTensors, requantized } = built;
  const size = `${(parameters / 1e6).toPrecision(3)} M parameters, ${precision}, ${byteSize(dataBytes)}`;
  const unused = unusedTensors.length > 0 ? [`not used by the decoder: ${unusedTensors.join(', ')}`] : [];
  const rounded =
    requantized.length > 0
      ? [`quantized a second time, because the graph cannot hold them: ${requantized.join(', ')}`]
      : [];
  return [`${id} (${modelType}) is built: ${size}`, ...unused, ...rounded];
}
