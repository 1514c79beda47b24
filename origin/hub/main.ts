import { existsSync } from 'node:fs';
import http from 'node:http';
import { availableParallelism, homedir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { Command, CommanderError } from 'commander';
import { errorMessage } from '../../shared/error-details.ts';
import { variables } from '../config/config.ts';
import { setVariables } from '../config/environment.ts';
import { mebibytesToBytes } from '../config/model-settings.ts';
import { findDecoder, PRECISIONS, type Precision } from '../model/config/model-files.ts';
import { type CachedModel, cachedModels, findCached, removeCached } from './cache.ts';
import { checkModel, type ModelCheck } from './check.ts';
import { HubClient } from './hub-client.ts';
import { HubError } from './hub-error.ts';
import { readHubSettings } from './hub-settings.ts';
import { requireRepository, requireRevision } from './names.ts';
import { byteSize, createProgress } from './progress.ts';
import { type PulledModel, pull } from './pull.ts';
import { linkTo } from './snapshot.ts';
import { chooseVariant, precisionOf } from './variants.ts';

/** `npm run model`. A failure prints one line on stderr and exits with code 1. */

interface VariantOptions {
  readonly variant?: string;
  readonly revision: string;
}
interface PullOptions extends VariantOptions {
  readonly link?: string;
}
interface CheckOptions extends VariantOptions {
  readonly prompt: string;
}

const MAX_ATTEMPTS = 6;
const STALL_MS = 30_000;
const PROMPT = 'Once upon a time there was a little girl who';

const progress = createProgress(process.stderr);
const hubSettings = () => readHubSettings(process.env, homedir());

function createProgram(): Command {
  const program = new Command('model')
    .description(
      'Downloads, lists, removes and checks models. Reads HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE and HTTPS_PROXY; check also CONTINUO_SLOTS, CONTINUO_CONTEXT and CONTINUO_KV_MEMORY_MIB.',
    )
    .exitOverride();
  program
    .command('pull <owner/name>')
    .description('download the files of one variant into the cache')
    .option('--variant <name>', 'precision, for example q4f16, fp16, q8, fp32')
    .option('--revision <name>', 'branch, tag or commit', 'main')
    .option('--link <path>', 'also make this path a symbolic link to the model directory')
    .action(pullCommand);
  program.command('list').description('list the models in the cache').action(listCommand);
  program.command('remove <owner/name>').description('delete a model from the cache').action(removeCommand);
  program
    .command('check <model>')
    .description('load a directory or a cached owner/name, run a prompt, measure speed and batch invariance')
    .option('--variant <name>', 'precision, if there are several')
    .option('--revision <name>', 'branch, tag or commit of a cached model', 'main')
    .option('--prompt <text>', 'text to continue', PROMPT)
    .action(checkCommand);
  return program;
}

async function pullCommand(name: string, { variant, revision, link }: PullOptions): Promise<void> {
  const settings = hubSettings();
  const repository = requireRepository(name);
  const onRetry = (reason: string, delayMs: number) =>
    progress.note(`${reason}; next attempt in ${(delayMs / 1000).toFixed(1)} s`);
  const retries = { maxAttempts: MAX_ATTEMPTS, sleep, random: Math.random, onRetry };
  const client = new HubClient({ settings, fetch, retries, stallMs: STALL_MS });
  const pulled = await pull(
    { repository, revision: requireRevision(revision), variant },
    { client, cache: settings.cache, progress },
  );
  progress.note(`${repository} (${pulled.variant}) is complete`);
  if (link !== undefined) await linkTo(pulled.directory, link);
  console.log(`CONTINUO_MODEL_DIR=${link ?? pulled.directory}`);
  if (!isDefaultPrecision(pulled)) console.log(`CONTINUO_MODEL_VARIANT=${pulled.variant}`);
}

/** False if the origin would load another precision, which an earlier pull left in the directory. */
const isDefaultPrecision = ({ directory, precision }: PulledModel): boolean =>
  precision === null || findDecoder(directory).file === findDecoder(directory, precision).file;

async function listCommand(): Promise<void> {
  console.log(modelTable(await cachedModels(hubSettings().cache)));
}

async function removeCommand(name: string): Promise<void> {
  const repository = requireRepository(name);
  const onWait = () => progress.note(`waiting for a pull of ${repository}`);
  const bytes = await removeCached(hubSettings().cache, repository, { onWait, sleep });
  console.log(`removed ${repository}, ${byteSize(bytes)}`);
}

async function checkCommand(model: string, options: CheckOptions): Promise<void> {
  const { directory, variant } = existsSync(model)
    ? { directory: model, variant: options.variant }
    : await findInCache(model, options);
  const report = await checkModel({
    directory,
    variant: variant === undefined ? undefined : requirePrecision(variant),
    prompt: options.prompt,
    ...servedSize(),
    threads: availableParallelism(),
    now: () => performance.now(),
  });
  console.log(checkTable(report));
}

const sizeVariables = variables.pick({
  CONTINUO_SLOTS: true,
  CONTINUO_CONTEXT: true,
  CONTINUO_KV_MEMORY_MIB: true,
});

/** Returns the slots and positions that the origin would serve with the same environment. */
function servedSize() {
  const parsed = sizeVariables.safeParse(setVariables(process.env));
  const issue = parsed.error?.issues[0];
  if (!parsed.success) throw new HubError(`${String(issue?.path[0])}: ${issue?.message}`);
  const {
    CONTINUO_SLOTS: slots,
    CONTINUO_CONTEXT: contextLength,
    CONTINUO_KV_MEMORY_MIB: limit,
  } = parsed.data;
  return { slots, contextLength, kvLimitBytes: mebibytesToBytes(limit) };
}

function requirePrecision(name: string): Precision {
  const known = PRECISIONS.find((precision) => precision === name);
  if (known !== undefined) return known;
  throw new HubError(`unknown variant ${name}; known variants: ${PRECISIONS.join(', ')}`);
}

/** Returns the variant's name only if the user chose it and its directory may hold other precisions. */
async function findInCache(name: string, { revision, variant }: VariantOptions) {
  const repository = requireRepository(name);
  const found = await findCached(hubSettings().cache, repository, requireRevision(revision));
  const chosen = chooseVariant(found.variants, repository, variant);
  return {
    directory: path.join(found.directory, chosen.directory),
    variant: precisionOf(chosen) === null ? undefined : variant,
  };
}

const PLAIN = { style: { head: [], border: [] } };

function modelTable(models: readonly CachedModel[]): string {
  if (models.length === 0) return 'No models in the cache.';
  const table = new Table({ ...PLAIN, head: ['model', 'revision', 'variants', 'size', 'directory'] });
  for (const { repository, commit, revisions, variants, bytes, directory } of models) {
    const names = variants.map(({ name }) => name).join('\n');
    const revision = [...revisions, commit.slice(0, 7)].join('\n');
    table.push([repository, revision, names, byteSize(bytes), directory]);
  }
  return table.toString();
}

function checkTable({ summary, warning, bytes, promptTokens, text, speed, invariance }: ModelCheck): string {
  const rate = (value: number) => `${value < 100 ? value.toPrecision(2) : Math.round(value)} tokens/s`;
  const { rows, identical, maxDifference } = invariance;
  const table = new Table({ ...PLAIN, colWidths: [null, 80], wordWrap: true });
  table.push(
    { model: summary },
    ...(warning === null ? [] : [{ warning }]),
    { files: byteSize(bytes) },
    { continuation: JSON.stringify(text) },
    { prompt: `${promptTokens} tokens` },
    { prefill: rate(speed.prefill) },
    { decode: `${rate(speed.decode)} for one sequence, ${rate(speed.batch)} for ${rows}` },
    {
      'batch invariance': identical
        ? `yes: a row has the same bits in a batch of 1 and of ${rows}`
        : `no: logits differ by up to ${maxDifference.toPrecision(2)} between a batch of 1 and of ${rows}`,
    },
  );
  return table.toString();
}

try {
  // Reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY; needs Node 24.14.
  http.setGlobalProxyFromEnv?.();
  await createProgram().parseAsync();
} catch (thrown) {
  const isShown = thrown instanceof CommanderError; // Commander has printed its message.
  if (!isShown) console.error(`continuo model: ${errorMessage(thrown)}`);
  process.exitCode = isShown ? thrown.exitCode : 1;
}
