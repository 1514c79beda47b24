import { spawn } from 'node:child_process';
import { readConfig } from '@continuo/origin/config/config.ts';
import {
  type BuildOptions,
  prepareForCommand,
  withBuildOptions,
} from '@continuo/origin/hub/prepare/build-command.ts';
import type { PreparedModel } from '@continuo/origin/hub/prepare/prepare-model.ts';
import { withExamples } from '@continuo/origin/terminal/program.ts';
import type { Command } from 'commander';
import type { CliContext } from './session.ts';
import type { Ready } from './start/launcher.ts';

/** `continuo serve` and `continuo origin`: from the name of a model to a served one. */

interface ServeOptions extends BuildOptions {
  readonly open: boolean;
}

export function addServeCommand(program: Command, { terminal, environment }: CliContext): void {
  const serve = program
    .command('serve [model]')
    .description(
      'fetch, build, check and serve a model, and open its page: owner/name[:variant], a directory or a .gguf file; without one, the built-in model',
    )
    .option('--no-open', 'do not open the page in a browser');
  withExamples(
    withBuildOptions(serve),
    'continuo serve',
    'continuo serve Qwen/Qwen3-0.6B-Base',
    'continuo serve bartowski/SmolLM2-135M-GGUF:Q8_0',
    'continuo serve ./my-finetune --precision q4',
  ).action(async (name: string | undefined, options: ServeOptions) => {
    let variables = environment;
    if (name !== undefined) {
      const prepared = await prepareForCommand(name, options, terminal, environment);
      variables = variablesOf(prepared, environment);
      if (prepared.built !== null) terminal.note(await check(prepared, await ofFirstOrigin(variables)));
    }
    // The launcher and its packages take long to load, and no other command needs them.
    const { launch } = await import('./start/launcher.ts');
    await launch(variables, (ready) => {
      terminal.print(banner(ready));
      if (options.open && terminal.isInteractive) openPage(pageOf(ready));
    });
  });
}

async function ofFirstOrigin(environment: CliContext['environment']): Promise<CliContext['environment']> {
  const { readStartSettings } = await import('./start/settings.ts');
  return { ...environment, ...readStartSettings(environment).origins[0]!.variables };
}

/** The origin in this process, with the variables that `npm run origin` reads. */
export function addOriginCommand(program: Command, { terminal, environment }: CliContext): void {
  const origin = program
    .command('origin [model]')
    .description('run only the origin, for an edge elsewhere; the model is named as for continuo serve');
  withExamples(
    withBuildOptions(origin),
    'CONTINUO_ORIGIN_SECRET_FILE=origin-secret continuo origin Qwen/Qwen3-0.6B-Base',
  ).action(async (name: string | undefined, options: BuildOptions) => {
    // A wrong variable ends the command before a download that can take hours.
    readConfig(environment);
    if (name !== undefined) {
      const prepared = await prepareForCommand(name, options, terminal, environment);
      // The origin reads the variables of its process.
      Object.assign(process.env, variablesOf(prepared, environment));
    }
    await import('@continuo/origin/main.ts');
  });
}

const variablesOf = ({ id, directory, variant }: PreparedModel, environment: CliContext['environment']) => ({
  ...environment,
  CONTINUO_MODELS_FILE: '',
  CONTINUO_MODEL_DIR: directory,
  CONTINUO_MODEL_NAME: id,
  CONTINUO_MODEL_VARIANT: variant ?? '',
});

/** `continuo model check` fills all slots, which takes minutes on a CPU. */
const MAX_CHECKED_SLOTS = 8;
/** The user waits for the first token, and a line needs one digit of the speed. */
const CHECKED_STEPS = 8;

/** Loads the model as the origin will, and generates. Returns what to print. @throws Error with one line */
async function check({ directory }: PreparedModel, variables: CliContext['environment']): Promise<string> {
  const { checkModel } = await import('@continuo/origin/hub/check/check.ts');
  const { findCheckTargets } = await import('@continuo/origin/hub/check/check-targets.ts');
  const options = { model: directory, variant: undefined, revision: 'main', cache: '', endpoint: '' };
  const [target] = await findCheckTargets(options, variables);
  const now = () => performance.now();
  const slots = Math.min(target!.engine.slots, MAX_CHECKED_SLOTS);
  const engine = { ...target!.engine, slots };
  const { summary, speed, invariance } = await checkModel({
    engine,
    prompt: 'Once upon a time',
    steps: CHECKED_STEPS,
    now,
  });
  const rows = invariance.identical
    ? 'rows of a batch keep their bits'
    : 'rows of a batch differ in their bits';
  return `checked: ${summary}; ${speed.decode.toPrecision(2)} tokens/s for one sequence; ${rows}`;
}

/** Opens an address in the browser of the desktop. Without one, nothing happens: the address is printed. */
function openPage(address: string): void {
  const [file, ...args] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['cmd', '/c', 'start', '']
        : ['xdg-open'];
  const child = spawn(file!, [...args, address], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}

/** The page's address. Its code works once: an address stays in the browser's history. */
const pageOf = ({ url, pageCode }: Ready): string => `${url}/#code=${pageCode}`;

/** What `npm start` prints when the server is ready: page, address, key and a curl line for the model. */
function banner(ready: Ready): string {
  const { url, apiKey, stateDirectory } = ready;
  const body = JSON.stringify({
    model: 'default',
    prompt: 'Once upon a time there was a king who had three daughters.',
    max_tokens: 80,
    temperature: 0.8,
    min_p: 0.05,
    repetition_penalty: 1.1,
    repeat_last_n: 64,
  });
  return `
Continuo is ready.

  page      ${pageOf(ready)}   (works once)
  endpoint  ${url}/v1
  key       ${apiKey}   (development only)
  logs      ${stateDirectory}

Try it:

  curl ${url}/v1/completions \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${body}'

Ctrl-C stops everything.`;
}
