import { readTextFile } from '@continuo/origin/config/named-file.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { parseSettings, type Variables } from '@continuo/worker/env/settings.ts';
import { parseUpstreams, type UpstreamConfig } from '@continuo/worker/upstreams/upstream-config.ts';
import { unstable_readConfig } from 'wrangler';
import * as z from 'zod';
import { type Finding, fail, ok, warn } from './doctor/finding.ts';

/** Checks the Worker's configuration file as `continuo doctor` does: variables, upstreams and bindings. */

/** Shields against floods: without them, forged keys reach the database. */
const SHIELDS = ['FLOOD_BY_ADDRESS', 'FLOOD_BY_KEY'];
/** Secrets of every Worker; upstreams name the others. */
const SECRETS = ['KEY_ID_SECRET', 'ADMIN_KEY_SHA256'];

const CORRECT = 'Correct the configuration file; docs/configuration.md lists the variables.';
const REPLACE = 'Replace them before you deploy to this environment; see docs/deploying.md.';

/** Checks every environment of a wrangler.toml, the top level first. */
export function checkWorker(file: string): Finding[] {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (error) {
    return [fail('Worker', errorMessage(error), 'Name the file with --config.')];
  }
  const names = new Set([...text.matchAll(/^\s*\[+\s*env\.([\w-]+)/gm)].map(([, name]) => name!));
  return [undefined, ...names].map((environment) => checkEnvironment(file, environment));
}

function checkEnvironment(file: string, environment: string | undefined): Finding {
  const name = `Worker (${environment ?? 'top level'})`;
  try {
    const { upstreams, secrets, placeholders } = readEnvironment(file, environment);
    const summary = `${upstreams.length} upstream(s); secrets: ${secrets.join(', ')}`;
    if (placeholders.length === 0) return ok(name, summary);
    return warn(name, `still has the placeholders of ${placeholders.join(', ')}`, REPLACE);
  } catch (error) {
    return fail(name, errorMessage(error).trim().split('\n').slice(0, 3).join(' '), CORRECT);
  }
}

/** What one environment of a wrangler.toml deploys. */
export interface WorkerEnvironment {
  readonly databases: readonly z.infer<typeof database>[];
  readonly upstreams: readonly UpstreamConfig[];
  /** Names of secrets that the Worker needs. */
  readonly secrets: readonly string[];
  /** Addresses that are still those of the template. */
  readonly placeholders: readonly string[];
}

/** @throws Error that says what is wrong, if this environment must not be deployed */
export function readEnvironment(file: string, environment: string | undefined): WorkerEnvironment {
  const config = readConfiguration(file, environment);
  const settings = parseSettings(config.vars as Variables);
  if (config.vars.ENVIRONMENT === undefined) throw new Error('ENVIRONMENT is not set');
  if (settings.ENVIRONMENT === 'development') {
    throw new Error('ENVIRONMENT is development, in which the development key is valid');
  }
  const upstreams = parseUpstreams(settings);
  const named = upstreams.flatMap((upstream) => upstream.binding ?? []);
  const bound = bindingsOf(config);
  // Environments inherit no bindings.
  const required = [...storesOf(readConfiguration(file, undefined)), ...SHIELDS, ...named];
  const lacking = [...new Set(required)].filter((name) => !bound.includes(name));
  if (lacking.length > 0) throw new Error(`lacks the bindings ${lacking.join(', ')}`);
  return {
    databases: config.d1_databases,
    upstreams,
    secrets: [...new Set([...upstreams.flatMap(secretsOf), ...SECRETS])],
    placeholders: upstreams
      .filter(({ url }) => new URL(url).hostname.endsWith('.example.com'))
      .map(({ url }) => url),
  };
}

const secretsOf = (upstream: UpstreamConfig): readonly string[] =>
  upstream.kind === 'origin' ? [upstream.secret] : upstream.apiKey === undefined ? [] : [upstream.apiKey];

const binding = z.object({ binding: z.string() });
const named = z.object({ name: z.string() });
const database = binding.extend({ database_name: z.string(), database_id: z.string().optional() });

/** The parts of wrangler's configuration that are checked. */
const configuration = z.object({
  vars: z.record(z.string(), z.unknown()),
  d1_databases: z.array(database),
  r2_buckets: z.array(binding),
  durable_objects: z.object({ bindings: z.array(named) }),
  ratelimits: z.array(named).default([]),
  vpc_services: z.array(binding).default([]),
  mtls_certificates: z.array(binding).default([]),
});
type Configuration = z.infer<typeof configuration>;

/** @throws Error with wrangler's explanation */
const readConfiguration = (file: string, environment: string | undefined): Configuration =>
  configuration.parse(unstable_readConfig({ config: file, env: environment }, { hideWarnings: true }));

const storesOf = ({ d1_databases, r2_buckets, durable_objects }: Configuration): string[] => [
  ...[...d1_databases, ...r2_buckets].map(({ binding }) => binding),
  ...durable_objects.bindings.map(({ name }) => name),
];

const bindingsOf = (config: Configuration): string[] => [
  ...storesOf(config),
  ...config.ratelimits.map(({ name }) => name),
  ...[...config.vpc_services, ...config.mtls_certificates].map(({ binding }) => binding),
];
