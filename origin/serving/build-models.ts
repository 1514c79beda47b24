import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ModelSettings, ModelSource } from '../config/model-settings.ts';
import { PRECISIONS } from '../model/config/model-files.ts';
import type { Logger } from '../process/log.ts';
import type { FaultyModel } from './inspect-model.ts';
import type { ModelSet } from './models-file.ts';

const COMMAND = fileURLToPath(new URL('../hub/main.ts', import.meta.url));

export interface BuiltSet extends ModelSet {
  /** Models that could not be fetched or built. */
  readonly faulty: readonly FaultyModel[];
}

/**
 * Fetches and builds the models that name their source, one after the other. Each is a process of `continuo
 * model build`, so that its memory and its work do not reach the streams that are served meanwhile.
 * @param onLine receives what the command says of a model
 */
export async function buildModels(
  { models: configured, limits }: ModelSet,
  onLine: (model: string, line: string) => void,
): Promise<BuiltSet> {
  const models: ModelSettings[] = [];
  const faulty: FaultyModel[] = [];
  for (const settings of configured) {
    const built = await buildModel(settings, (line) => onLine(settings.name, line));
    if ('reason' in built) faulty.push(built);
    else models.push(built);
  }
  return { models, limits, faulty };
}

export const logBuild =
  (log: Logger) =>
  (model: string, line: string): void =>
    log.info({ model, output: line }, 'build');

/** Returns the settings with the directory of the graph in place of the source, or why there is no graph. */
async function buildModel(
  settings: ModelSettings,
  onLine: (line: string) => void,
): Promise<ModelSettings | FaultyModel> {
  const { source, engine } = settings;
  if (source === null) return settings;
  let last = 'the build ended without a reason';
  const built = await resultsOf(startBuild(source, engine.device.provider), (line) => {
    last = line;
    onLine(line);
  });
  const directory = built?.get('CONTINUO_MODEL_DIR');
  // The command ends with `model: ` and the reason.
  if (directory === undefined) return { settings, reason: last.replace(/^model: /, '') };
  const variant = PRECISIONS.find((precision) => precision === built?.get('CONTINUO_MODEL_VARIANT')) ?? null;
  return { ...settings, source: null, engine: { ...engine, directory, variant } };
}

function startBuild({ model, precision, adapter, folder }: ModelSource, provider: string) {
  const options = Object.entries({ '--precision': precision, '--adapter': adapter });
  const given = options.flatMap(([name, value]) => (value === null ? [] : [name, value]));
  return spawn(process.execPath, [COMMAND, 'build', model, ...given], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, CONTINUO_MODELS_FILE: undefined, CONTINUO_PROVIDER: provider },
  });
}

/**
 * Returns the lines NAME=value that a build writes to its standard output; null if it failed. It ends with
 * this process.
 * @param onLine receives its standard error
 */
async function resultsOf(
  child: ReturnType<typeof startBuild>,
  onLine: (line: string) => void,
): Promise<ReadonlyMap<string, string> | null> {
  const stop = () => void child.kill();
  process.once('exit', stop);
  const results = new Map<string, string>();
  createInterface(child.stdout).on('line', (line) => {
    const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) results.set(name, value!);
  });
  createInterface(child.stderr).on('line', onLine);
  const [code] = await once(child, 'close').catch((error: Error) => {
    onLine(`model: the build cannot start: ${error.message}`);
    return [null];
  });
  process.off('exit', stop);
  return code === 0 ? results : null;
}
