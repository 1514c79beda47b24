import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ModelSettings, ModelSource } from '../config/model-settings.ts';
import { PRECISIONS } from '../model/config/model-files.ts';
import type { Logger } from '../process/log.ts';
import type { FaultyModel, Inspection } from './inspect-model.ts';
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
    const { source } = settings;
    if (source === null) models.push(settings);
    else {
      const lines: string[] = [];
      const engine = await runBuild(settings, source, (line) => {
        lines.push(line);
        onLine(settings.name, line);
      });
      if (engine === null) faulty.push({ settings, reason: reasonOf(lines) });
      else models.push({ ...settings, source: null, engine: { ...settings.engine, ...engine } });
    }
  }
  return { models, limits, faulty };
}

/** The command ends with `model: ` and the reason. */
const reasonOf = (lines: readonly string[]): string =>
  lines.at(-1)?.replace(/^model: /, '') ?? 'the build ended without a reason';

/** Adds the models that could not be built to the others. */
export const withFaulty = ({ models, faulty }: Inspection, others: readonly FaultyModel[]): Inspection => ({
  models,
  faulty: [...others, ...faulty],
});

export const logBuild =
  (log: Logger) =>
  (model: string, line: string): void =>
    log.info({ model, output: line }, 'build');

/** Returns where the graph is; null if the command failed. */
async function runBuild(
  { engine }: ModelSettings,
  { model, precision, adapter, folder }: ModelSource,
  onLine: (line: string) => void,
) {
  const options = Object.entries({ '--precision': precision, '--adapter': adapter });
  const child = spawn(
    process.execPath,
    [COMMAND, 'build', model, ...options.flatMap(([name, value]) => (value === null ? [] : [name, value]))],
    {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, CONTINUO_MODELS_FILE: undefined, CONTINUO_PROVIDER: engine.device.provider },
    },
  );
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
  const directory = results.get('CONTINUO_MODEL_DIR');
  if (code !== 0 || directory === undefined) return null;
  const variant = PRECISIONS.find((precision) => precision === results.get('CONTINUO_MODEL_VARIANT')) ?? null;
  return { directory, variant };
}
