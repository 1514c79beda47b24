import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Environment } from '@continuo/origin/config/environment.ts';
import { CommandError } from '@continuo/origin/terminal/program.ts';
import type { Terminal } from '@continuo/origin/terminal/terminal.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import * as z from 'zod';
import { ADMIN_KEY_FILE, hostSecret } from '../start/host-secrets.ts';
import { readEnvironment, type WorkerEnvironment } from '../worker-configuration.ts';
import { type Plan, planLines, planOf } from './plan.ts';
import { type SmokeTest, smokeTest } from './smoke-test.ts';
import { type Wrangler, WranglerError } from './wrangler.ts';

export interface DeployOptions {
  /** Environment of the configuration; '' = its top level. */
  readonly env: string;
  readonly config: string;
  readonly dryRun: boolean;
  /** Directory of the secrets that this command makes. */
  readonly secrets: string;
  readonly url?: string;
}

interface DeployContext extends Omit<SmokeTest, 'env'> {
  readonly terminal: Terminal;
  readonly environment: Environment;
  readonly wrangler: Wrangler;
}

const names = z.array(z.object({ name: z.string() }));

/** Deploys the Worker, or prints how. May be repeated: it makes only what is missing. @throws CommandError */
export async function deploy(options: DeployOptions, context: DeployContext): Promise<void> {
  const { terminal, wrangler } = context;
  const worker = readWorker(options);
  const plan = planOf(worker, options.env);
  if (options.dryRun) terminal.print(`This deployment would run:\n${planLines(plan).join('\n')}`);
  terminal.note('Checking the configuration and the bundle …');
  await wrangler(plan.check);
  if (worker.placeholders.length > 0) {
    const open = `Set the addresses of the origins in ${options.config}: ${worker.placeholders.join(', ')} is an example.`;
    // The button deploys first, and its user sets the address later.
    if (!options.dryRun && !context.environment.WORKERS_CI) throw new CommandError(open);
    terminal.note(open);
  }
  if (options.dryRun) return terminal.note('Dry run: nothing was deployed.');
  await createDatabases(plan, context);
  const lacking = await missingSecrets(plan, options, context);
  for (const words of plan.migrate) {
    terminal.note(`Migrating ${words[3]} …`);
    await wrangler(words);
  }
  terminal.note('Deploying …');
  const reported = await upload(plan, lacking, context);
  await adviseReplication(plan, context);
  const url = options.url ?? reported;
  if (url === null)
    return terminal.note('Deployed. To test an address of yours, repeat with --url https://…');
  const keyFile = path.join(options.secrets, ADMIN_KEY_FILE);
  const adminKey = existsSync(keyFile) ? readFileSync(keyFile, 'utf8').trim() : null;
  const probes = await smokeTest(url, adminKey, { ...context, ...options });
  terminal.note(`Deployed. Testing ${url}: ${probes.join(', ')}`);
  terminal.print(nextStep(url, options.secrets, adminKey !== null));
}

function readWorker({ config, env }: DeployOptions): WorkerEnvironment {
  try {
    return readEnvironment(config, env || undefined);
  } catch (error) {
    throw new CommandError(`${config}, ${env || 'top level'}: ${errorMessage(error).trim()}`);
  }
}

async function createDatabases(plan: Plan, { wrangler, terminal }: DeployContext): Promise<void> {
  if (plan.createDatabases.length === 0) return;
  const listed = await wrangler(plan.listDatabases).catch((error: unknown) => {
    throw new CommandError(
      `${errorMessage(error)}\nLog in with npx wrangler login, or set CLOUDFLARE_API_TOKEN. ` +
        'With several accounts, also set CLOUDFLARE_ACCOUNT_ID.',
    );
  });
  const present = new Set(names.parse(JSON.parse(listed)).map(({ name }) => name));
  for (const { name, words } of plan.createDatabases) {
    if (present.has(name)) continue;
    terminal.note(`Making the database ${name} …`);
    await wrangler(words);
  }
}

/** Returns the secrets that the Worker lacks: from the environment, else made in the directory of secrets. */
async function missingSecrets(
  plan: Plan,
  { secrets: directory }: DeployOptions,
  { wrangler, environment, terminal }: DeployContext,
): Promise<Readonly<Record<string, string>>> {
  const listed = await wrangler(plan.listSecrets).catch((error: unknown) => {
    // The first deployment makes the Worker.
    if (error instanceof WranglerError && /not found/.test(error.output)) return '[]';
    throw error;
  });
  const present = new Set(names.parse(JSON.parse(listed)).map(({ name }) => name));
  const values: Record<string, string> = {};
  const unknown: string[] = [];
  for (const name of plan.secrets.filter((secret) => !present.has(secret))) {
    // What a build service makes would be lost with it.
    const value = environment[name] || (environment.CI ? null : made(directory, name));
    if (value === null) unknown.push(name);
    else values[name] = value;
  }
  if (unknown.length === 0) return values;
  const text = `The Worker lacks the secrets ${unknown.join(', ')}.`;
  // The button stores what its page has asked for when the build is done.
  if (!environment.WORKERS_CI) throw new CommandError(`${text} Set them as variables of this command.`);
  terminal.note(`${text} If requests fail, set them in the dashboard.`);
  return values;
}

function made(directory: string, name: string): string | null {
  if (name !== 'ORIGIN_SECRET' && name !== 'KEY_ID_SECRET' && name !== 'ADMIN_KEY_SHA256') return null;
  return hostSecret(directory, name);
}

const record = z.object({ type: z.literal('deploy'), targets: z.array(z.string()).default([]) });

/** Returns the address of the deployed Worker; null if wrangler reports none. */
async function upload(
  plan: Plan,
  secrets: Readonly<Record<string, string>>,
  { wrangler }: DeployContext,
): Promise<string | null> {
  const directory = mkdtempSync(path.join(tmpdir(), 'continuo-deploy-'));
  try {
    const file = path.join(directory, 'secrets.json');
    const output = path.join(directory, 'output');
    writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 });
    const withSecrets = Object.keys(secrets).length === 0 ? [] : ['--secrets-file', file];
    await wrangler([...plan.deploy, ...withSecrets], { WRANGLER_OUTPUT_FILE_PATH: output });
    const lines = existsSync(output) ? readFileSync(output, 'utf8').trim().split('\n') : [];
    const targets = lines.flatMap((line) => record.safeParse(JSON.parse(line)).data?.targets ?? []);
    return targets.find((target) => /^https:\/\/[^/*\s]+\/?$/.test(target)) ?? null;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const replication = z.object({ read_replication: z.object({ mode: z.string() }) });

/**
 * Says how to turn on read replication, which wrangler cannot. Without it, one place serves all reads of
 * keys.
 */
async function adviseReplication(
  { replication: database }: Plan,
  { wrangler, terminal }: DeployContext,
): Promise<void> {
  if (database === null) return;
  const mode = await wrangler(database.words).then(
    (text) => replication.safeParse(JSON.parse(text)).data?.read_replication.mode,
    () => undefined,
  );
  if (mode === 'auto') return;
  terminal.note(
    `Let copies near the callers serve the reads of ${database.name}: in the dashboard, choose the database under D1, ` +
      'then Settings, Enable Read Replication.',
  );
}

function nextStep(url: string, directory: string, hasAdminKey: boolean): string {
  const key = hasAdminKey ? path.join(directory, ADMIN_KEY_FILE) : 'FILE_WITH_ADMIN_KEY';
  const origin = path.join(directory, 'origin-secret');
  const start = existsSync(origin)
    ? `Start each origin with CONTINUO_ORIGIN_SECRET_FILE=${origin}, or copy the file to its machine.\n`
    : '';
  return `${start}Then make a tenant and its key:
  npx continuo --url ${url} --key-file ${key} tenants create --id acme --name Acme
  npx continuo --url ${url} --key-file ${key} keys create --tenant acme --name first`;
}
