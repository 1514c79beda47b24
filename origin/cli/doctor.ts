import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '@continuo/origin/config/environment.ts';
import { CommandError, withExamples } from '@continuo/origin/terminal/program.ts';
import type { Color, Terminal } from '@continuo/origin/terminal/terminal.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { Command } from 'commander';
import { findAccess, findAddress } from './access.ts';
import { createApi } from './api.ts';
import { type Finding, fail, fetchReply, isHealth, ok, warn } from './doctor/finding.ts';
import type { CliContext, GlobalOptions } from './session.ts';
import { PACKAGED_WORKER, ROOT, stateDirectory } from './start/installation.ts';

/** `continuo doctor`. */

/** The package cannot deploy its Worker. */
const CONFIGURATION = existsSync(PACKAGED_WORKER) ? undefined : path.join(ROOT, 'wrangler.toml');
/** The NVIDIA driver creates it. */
const CARD_DEVICE = '/dev/nvidiactl';

interface DoctorOptions {
  readonly config?: string;
  readonly origin?: string;
}

export function addDoctorCommand(program: Command, context: CliContext): void {
  const doctor = program
    .command('doctor')
    .description('find what keeps Continuo from working on this machine, and say what to do')
    .option('--config <file>', "the Worker's configuration; default: that of a checkout", CONFIGURATION)
    .option('--origin <address>', 'origin whose clock is compared; default: the local one');
  withExamples(
    doctor,
    'continuo doctor',
    'CONTINUO_URL=https://api.example.com continuo doctor --origin http://10.0.0.8:9100',
  ).action(async (options: DoctorOptions) => {
    const { json, ...access } = program.opts<GlobalOptions>();
    const findings: Finding[] = [];
    for await (const finding of examine(options, access, context)) {
      findings.push(finding);
      if (!json) context.terminal.print(lineOf(finding, context.terminal));
    }
    if (json) context.terminal.print(JSON.stringify(findings, null, 2));
    const failed = findings.filter(({ status }) => status === 'fail').length;
    if (failed > 0) throw new CommandError(`${failed} of ${findings.length} checks failed.`);
  });
}

const COLORS: Readonly<Record<Finding['status'], Color>> = { ok: 'green', warn: 'yellow', fail: 'red' };

function lineOf({ status, name, text, advice }: Finding, terminal: Terminal): string {
  const line = `${terminal.paint(COLORS[status], status.padEnd(4))}  ${name}: ${text}`;
  return advice === undefined ? line : `${line}\n      ${advice}`;
}

/** Yields the findings in the order in which a newcomer should read them. Loads each check's modules late. */
async function* examine(
  { config, origin }: DoctorOptions,
  access: Omit<GlobalOptions, 'json'>,
  { environment, fetch: ask }: CliContext,
): AsyncGenerator<Finding> {
  const machine = await import('./doctor/machine.ts');
  const { readStartSettings } = await import('./start/settings.ts');
  const typescript = process.features.typescript !== false;
  yield machine.checkNode({ version: process.versions.node, typescript });
  yield machine.checkVariables(environment);
  let originUrl = origin;
  let ofOrigin = environment;
  try {
    const settings = readStartSettings(environment);
    yield await machine.checkPort('CONTINUO_PORT', settings.port, settings.host);
    for (const { port } of settings.origins)
      yield await machine.checkPort('CONTINUO_ORIGIN_PORT', port, '127.0.0.1');
    yield machine.checkStateDirectory(stateDirectory(environment));
    originUrl ??= settings.origins[0]!.url;
    ofOrigin = { ...environment, ...settings.origins[0]!.variables };
  } catch (error) {
    yield fail('Launcher', errorMessage(error), 'Correct it; docs/configuration.md lists all variables.');
  }
  const { checkModels } = await import('./doctor/model.ts');
  const { thisMachine } = await import('@continuo/origin/model/device/device-choice.ts');
  yield* await checkModels(ofOrigin, thisMachine(), existsSync(CARD_DEVICE));
  const { checkWorker } = await import('./worker-configuration.ts');
  if (config !== undefined) yield* checkWorker(config);
  yield* await checkServer(access, environment, ask);
  if (originUrl !== undefined) yield await machine.checkClock(originUrl, Date.now);
}

/** Checks the server that the other commands talk to, and the key. */
async function checkServer(
  options: Omit<GlobalOptions, 'json'>,
  environment: Environment,
  ask: typeof fetch,
): Promise<Finding[]> {
  try {
    const url = findAddress(options, environment);
    if (!isHealth(await fetchReply(new URL('/health', url)))) {
      const text = `no Continuo server answers at ${url.origin}`;
      const isChosen = (options.url ?? environment.CONTINUO_URL ?? '') !== '';
      return isChosen
        ? [fail('Server', text, 'Correct --url or CONTINUO_URL, or start the server.')]
        : [warn('Server', text, 'Run continuo serve.')];
    }
    return [ok('Server', url.origin), await checkKey(options, environment, ask)];
  } catch (error) {
    return [fail('Server', errorMessage(error), 'Correct --url or CONTINUO_URL.')];
  }
}

async function checkKey(
  options: Omit<GlobalOptions, 'json'>,
  environment: Environment,
  ask: typeof fetch,
): Promise<Finding> {
  try {
    const models = await createApi(findAccess(options, environment, 'caller'), ask).list('/v1/models');
    const states = models.map(({ id, state }) => `${String(id)} (${String(state)})`).join(', ');
    if (models.length > 0) return ok('Key and models', states);
    return warn('Key and models', 'the key may use no model', 'Give it models, or start an origin.');
  } catch (error) {
    const advice = 'Set CONTINUO_API_KEY or --key-file to a key of this server, or look at its logs.';
    return fail('Key and models', errorMessage(error), advice);
  }
}
