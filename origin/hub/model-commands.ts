import { homedir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import type { Environment } from '../config/environment.ts';
import { readTextFile } from '../config/named-file.ts';
import { findDecoder, PRECISIONS, type Precision } from '../model/config/model-files.ts';
import { withExamples } from '../terminal/program.ts';
import { byteSize, createProgress, type ProgressDisplay } from '../terminal/progress.ts';
import { createResults, type Results } from '../terminal/tables.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { ModelCheck } from './check/check.ts';
import { cachedModels, removeCached } from './fetch/cache.ts';
import { commandConnection, throughProxy } from './fetch/command-connection.ts';
import { HubClient } from './fetch/hub-client.ts';
import { HubError } from './fetch/hub-error.ts';
import { type HubSettings, readHubSettings } from './fetch/hub-settings.ts';
import { DEFAULT_REVISION, nameOrOption, readRepositoryName, requireRevision } from './fetch/names.ts';
import { type PulledModel, pull } from './fetch/pull.ts';
import { linkTo } from './fetch/snapshot.ts';
import { addBuildCommand } from './prepare/build-command.ts';

/** The commands that fetch and check models. They need no server. */

interface PullOptions {
  readonly variant?: string;
  readonly revision: string;
  readonly link?: string;
}
interface CheckOptions {
  readonly variant?: Precision;
  readonly revision: string;
  readonly prompt: string;
  readonly text?: string;
}

const PROMPT = 'Once upon a time there was a little girl who';

/** Adds pull, list, check and remove. The root of the tree has the option `--json`. */
export function addModelCommands(
  model: Command,
  root: Command,
  terminal: Terminal,
  environment: Environment,
): void {
  const progress = createProgress(terminal.stderr);
  const results = () => createResults(terminal, root.opts<{ json: boolean }>().json);
  const settings = () => readHubSettings(environment, homedir());
  withExamples(
    model
      .command('pull <owner/name>')
      .description('download the files of one variant into the cache')
      .option('--variant <name>', 'precision, for example q4f16, fp16, q8, fp32')
      .option('--revision <name>', 'branch, tag or commit', DEFAULT_REVISION)
      .option('--link <path>', 'also make this path a symbolic link to the model directory')
      .addHelpText('after', '\nReads HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE and HTTPS_PROXY.'),
    'continuo model pull onnx-community/Qwen3-0.6B-ONNX --variant q4f16',
  ).action(async (name: string, options: PullOptions) => {
    for (const line of await pulled(name, options, settings(), progress)) terminal.print(line);
  });
  addBuildCommand(model, terminal, environment);
  withExamples(
    model.command('list').description('list the models in the cache'),
    'continuo model list --json',
  ).action(async () => showCache(await cachedModels(settings().cache), results()));
  withExamples(
    model.command('remove <owner/name>').description('delete a model from the cache'),
    'continuo model remove onnx-community/Qwen3-0.6B-ONNX',
  ).action(async (name: string) => {
    const { repository, revision, variant } = readRepositoryName(name, settings().endpoint);
    if (revision !== null || variant !== null)
      throw new HubError(`remove deletes all of ${repository}; name it without revision and variant`);
    const onWait = () => progress.note(`waiting for a pull of ${repository}`);
    const bytes = await removeCached(settings().cache, repository, { onWait, sleep });
    terminal.print(`removed ${repository}, ${byteSize(bytes)}`);
  });
  withExamples(
    model
      .command('check [model]')
      .description(
        'load a directory, a name of the models file or a cached owner/name, run a prompt, measure speed and batch invariance; default: all configured models',
      )
      .addOption(new Option('--variant <name>', 'precision, if there are several').choices(PRECISIONS))
      .option('--revision <name>', 'branch, tag or commit of a cached model', DEFAULT_REVISION)
      .option('--prompt <text>', 'text to continue', PROMPT)
      .option('--text <file>', 'text to predict; prints bits per byte, which tell what a precision loses')
      .addHelpText(
        'after',
        '\nReads the variables of the origin: CONTINUO_MODEL_DIR, CONTINUO_MODELS_FILE, CONTINUO_PROVIDER and so on.',
      ),
    'continuo model check ./my-model',
    'CONTINUO_PROVIDER=cuda continuo model check onnx-community/Qwen3-0.6B-ONNX --variant q4f16',
  ).action(async (name: string | undefined, options: CheckOptions) => {
    // ONNX Runtime takes long to load, and no other command needs it.
    const { checkModel } = await import('./check/check.ts');
    const { findCheckTargets } = await import('./check/check-targets.ts');
    const { revision, variant } = options;
    const text = options.text === undefined ? undefined : readTextFile(options.text);
    const { cache, endpoint } = settings();
    const wanted = { model: name, revision, variant, cache, endpoint };
    for (const target of await findCheckTargets(wanted, environment)) {
      const now = () => performance.now();
      const report = await checkModel({ engine: target.engine, prompt: options.prompt, text, now });
      results().object(checkFields(target.name, report));
    }
  });
}

/** Downloads a model. Returns the lines that configure the origin for it. */
async function pulled(
  name: string,
  { variant, revision, link }: PullOptions,
  settings: HubSettings,
  progress: ProgressDisplay,
): Promise<string[]> {
  const named = readRepositoryName(name, settings.endpoint);
  const { repository } = named;
  const client = new HubClient({ settings, ...commandConnection(progress) });
  const request = {
    repository,
    revision: nameOrOption('revision', named.revision, requireRevision(revision), DEFAULT_REVISION),
    variant: nameOrOption('variant', named.variant, variant, undefined),
  };
  const model = await throughProxy(() => pull(request, { client, cache: settings.cache, progress }));
  progress.note(`${repository} (${model.variant}) is complete`);
  if (link !== undefined) await linkTo(model.directory, link);
  const directory = `CONTINUO_MODEL_DIR=${link ?? model.directory}`;
  return isDefaultPrecision(model) ? [directory] : [directory, `CONTINUO_MODEL_VARIANT=${model.variant}`];
}

/** False if the origin would load another precision, which an earlier pull left in the directory. */
const isDefaultPrecision = ({ directory, precision }: PulledModel): boolean =>
  precision === null || findDecoder(directory).file === findDecoder(directory, precision).file;

function showCache(models: Awaited<ReturnType<typeof cachedModels>>, results: Results): void {
  const rows = models.map(({ repository, commit, revisions, variants, bytes, directory }) => ({
    model: repository,
    revision: [...revisions, commit.slice(0, 7)],
    variants: variants.map(({ name }) => name),
    size: byteSize(bytes),
    directory,
  }));
  results.list(rows, ['model', 'revision', 'variants', 'size', 'directory']);
}

function checkFields(name: string, check: ModelCheck) {
  const { summary, warning, bytes, promptTokens, text, speed, invariance, likelihood } = check;
  const rate = (value: number) => `${value < 100 ? value.toPrecision(2) : Math.round(value)} tokens/s`;
  const { rows, identical, maxDifference } = invariance;
  return {
    name,
    model: summary,
    ...(warning === null ? {} : { warning }),
    files: byteSize(bytes),
    continuation: JSON.stringify(text),
    prompt: `${promptTokens} tokens`,
    ...(likelihood === null
      ? {}
      : { text: `${likelihood.bitsPerByte.toFixed(4)} bits per byte over ${likelihood.bytes} bytes` }),
    prefill: rate(speed.prefill),
    decode: `${rate(speed.decode)} for one sequence, ${rate(speed.batch)} for ${rows}`,
    'batch invariance': identical
      ? `yes: a row has the same bits in a batch of 1 and of ${rows}`
      : `no: logits differ by up to ${maxDifference.toPrecision(2)} between a batch of 1 and of ${rows}`,
  };
}
