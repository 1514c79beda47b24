import { existsSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import { findDecoder, PRECISIONS, type Precision } from '../model/config/model-files.ts';
import { byteSize } from './byte-size.ts';
import { cachedModels, findCached, removeCached } from './cache.ts';
import { checkModel } from './check.ts';
import { HubClient } from './hub-client.ts';
import { HubError } from './hub-error.ts';
import type { HubSettings } from './hub-settings.ts';
import { requireRepository, requireRevision } from './names.ts';
import type { Progress } from './progress.ts';
import { type Pulled, pull } from './pull.ts';
import { checkReport, modelTable } from './report.ts';
import { linkTo } from './snapshot.ts';
import { chooseVariant, precisionOf } from './variants.ts';

/** What the commands take from outside. */
export interface Surroundings {
  readonly settings: HubSettings;
  readonly fetch: typeof fetch;
  readonly progress: Progress;
  /** A result, on the standard output. */
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
  readonly sleep: (ms: number) => Promise<void>;
  readonly random: () => number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  readonly threads: number;
  readonly freeMemory: () => number;
}

interface Choice {
  readonly variant?: string;
  readonly revision: string;
}

const ATTEMPTS = 6;
const STALL_MS = 30_000;
const PROMPT = 'Once upon a time there was a little girl who';

/** The program `model`; `parseAsync` runs it. */
export function createProgram(surroundings: Surroundings): Command {
  const { print, printError } = surroundings;
  const program = new Command('model')
    .description(
      'Fetch, list, remove and try models. HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE and HTTPS_PROXY apply.',
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => print(text.trimEnd()),
      writeErr: (text) => printError(text.trimEnd()),
    });
  program
    .command('pull <owner/name>')
    .description('fetch the files of one variant into the cache')
    .option('--variant <name>', 'precision, for example q4f16, fp16, q8, fp32')
    .option('--revision <name>', 'branch, tag or commit', 'main')
    .option('--link <path>', 'also make this path a link to the model directory')
    .action((name: string, choice: Choice & { readonly link?: string }) =>
      pullCommand(surroundings, name, choice),
    );
  program
    .command('list')
    .description('show the models of the cache')
    .action(async () => print(modelTable(await cachedModels(surroundings.settings.cache))));
  program
    .command('remove <owner/name>')
    .description('remove everything the cache holds of a repository')
    .action((name: string) => removeCommand(surroundings, name));
  program
    .command('check <model>')
    .description('load a directory or a cached owner/name, run a prompt, measure')
    .option('--variant <name>', 'which precision, where there are several')
    .option('--revision <name>', 'of a cached model', 'main')
    .option('--prompt <text>', 'what to continue', PROMPT)
    .action((model: string, choice: Choice & { readonly prompt: string }) =>
      checkCommand(surroundings, model, choice),
    );
  return program;
}

async function pullCommand(
  surroundings: Surroundings,
  name: string,
  choice: Choice & { readonly link?: string },
): Promise<void> {
  const { settings, fetch, sleep, random, progress, print } = surroundings;
  const repository = requireRepository(name);
  const revision = requireRevision(choice.revision);
  const onRetry = (reason: string, delayMs: number) =>
    progress.note(`${reason}; next attempt in ${(delayMs / 1000).toFixed(1)} s`);
  const patience = { attempts: ATTEMPTS, sleep, random, onRetry };
  const client = new HubClient({ settings, fetch, patience, stallMs: STALL_MS });
  const context = { client, cache: settings.cache, progress, sleep };
  const pulled = await pull({ repository, revision, variant: choice.variant }, context);
  const { directory, variant } = pulled;
  progress.note(`${repository} (${variant}) is there`);
  if (choice.link !== undefined) await linkTo(directory, choice.link);
  print(`CONTINUO_MODEL_DIR=${choice.link ?? directory}`);
  if (needsTelling(pulled)) print(`CONTINUO_MODEL_VARIANT=${variant}`);
}

/** An earlier pull has left another precision beside it, which the origin would take. */
const needsTelling = ({ directory, precision }: Pulled): boolean =>
  precision !== null && findDecoder(directory).file !== findDecoder(directory, precision).file;

async function removeCommand({ settings, sleep, progress, print }: Surroundings, name: string) {
  const repository = requireRepository(name);
  const onWait = () => progress.note(`waiting for a pull of ${repository}`);
  const bytes = await removeCached(settings.cache, repository, { onWait, sleep });
  print(`removed ${repository}, ${byteSize(bytes)}`);
}

async function checkCommand(
  surroundings: Surroundings,
  model: string,
  choice: Choice & { readonly prompt: string },
): Promise<void> {
  const { settings, threads, now, freeMemory, print } = surroundings;
  const found = existsSync(model)
    ? { directory: model, variant: choice.variant }
    : await findInCache(settings.cache, model, choice);
  const variant = found.variant === undefined ? undefined : requirePrecision(found.variant);
  const request = { ...found, variant, prompt: choice.prompt, threads, kvLimitBytes: freeMemory(), now };
  print(checkReport(await checkModel(request)));
}

/** @throws HubError naming those there can be */
function requirePrecision(name: string): Precision {
  const known = PRECISIONS.find((precision) => precision === name);
  if (known === undefined)
    throw new HubError(`there is no variant ${name}; known are: ${PRECISIONS.join(', ')}`);
  return known;
}

/** The directory of a variant; its name only where there may be others in it and one was asked for. */
async function findInCache(cache: string, name: string, choice: Choice) {
  const repository = requireRepository(name);
  const { directory, variants } = await findCached(cache, repository, requireRevision(choice.revision));
  const chosen = chooseVariant(variants, repository, choice.variant);
  return {
    directory: path.join(directory, chosen.directory),
    variant: precisionOf(chosen) === null ? undefined : choice.variant,
  };
}
