import { readFileSync } from 'node:fs';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { parseSettings, type Variables } from '@continuo/worker/env/settings.ts';
import { parseUpstreams, type UpstreamConfig } from '@continuo/worker/upstreams/upstream-config.ts';
import { unstable_readConfig } from 'wrangler';
import * as z from 'zod';
import { type Finding, fail, ok, warn } from './doctor/finding.ts';

/** Checks the Worker's configuration file as `continuo doctor` does: variables, upstreams and bindings. */

const PLACEHOLDER_ID = /^00000000-0000-0000-0000-0000000000/;

const CORRECT = 'Correct the configuration file; docs/configuration.md lists the variables.';
const REPLACE = 'Replace them before you deploy to this environment; see docs/deploying.md.';

/** Checks every environment of a wrangler.toml, the one of development first. */
export function checkWorker(file: string): Finding[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return [
      fail('Worker', `${file} cannot be read (${errorMessage(error)})`, 'Name the file with --config.'),
    ];
  }
  const names = new Set([...text.matchAll(/^\s*\[+\s*env\.([\w-]+)/gm)].map(([, name]) => name!));
  // Environments inherit no bindings.
  const required = requiredStores(file);
  return [undefined, ...names].map((environment) => checkEnvironment(file, environment, required));
}

function checkEnvironment(
  file: string,
  environment: string | undefined,
  required: readonly string[],
): Finding {
  const name = `Worker (${environment ?? 'development'})`;
  try {
    const config = readConfiguration(file, environment);
    const upstreams = parseUpstreams(parseSettings(config.vars as Variables));
    const named = upstreams.flatMap((upstream) => upstream.binding ?? []);
    const found = bindingsOf(config);
    const lacking = [...required, ...named].filter((name) => !found.includes(name));
    if (lacking.length > 0) return fail(name, `lacks the bindings ${lacking.join(', ')}`, CORRECT);
    const secrets = [...new Set(upstreams.flatMap(secretsOf))].join(', ') || 'none';
    if (environment === undefined) return ok(name, `${upstreams.length} upstream(s)`);
    const open = placeholders(config, upstreams);
    if (open.length === 0) return ok(name, `${upstreams.length} upstream(s); secrets: ${secrets}`);
    return warn(name, `still has the placeholders of ${open.join(', ')}`, REPLACE);
  } catch (error) {
    return fail(name, errorMessage(error).trim().split('\n').slice(0, 3).join(' '), CORRECT);
  }
}

const secretsOf = (upstream: UpstreamConfig): readonly string[] =>
  upstream.kind === 'origin' ? [upstream.secret] : upstream.apiKey === undefined ? [] : [upstream.apiKey];

const binding = z.object({ binding: z.string() });

/** The parts of wrangler's configuration that are checked. */
const configuration = z.object({
  vars: z.record(z.string(), z.unknown()),
  d1_databases: z.array(binding.extend({ database_id: z.string().default('') })),
  durable_objects: z.object({ bindings: z.array(z.object({ name: z.string() })) }),
  vpc_services: z.array(binding).default([]),
  mtls_certificates: z.array(binding).default([]),
});
type Configuration = z.infer<typeof configuration>;

/** @throws Error with wrangler's explanation */
const readConfiguration = (file: string, environment: string | undefined): Configuration =>
  configuration.parse(unstable_readConfig({ config: file, env: environment }, { hideWarnings: true }));

const storesOf = ({ d1_databases, durable_objects }: Configuration): string[] => [
  ...d1_databases.map(({ binding }) => binding),
  ...durable_objects.bindings.map(({ name }) => name),
];

const bindingsOf = (config: Configuration): string[] => [
  ...storesOf(config),
  ...[...config.vpc_services, ...config.mtls_certificates].map(({ binding }) => binding),
];

const placeholders = ({ d1_databases }: Configuration, upstreams: readonly UpstreamConfig[]): string[] => [
  ...d1_databases.filter(({ database_id: id }) => PLACEHOLDER_ID.test(id)).map(({ binding }) => binding),
  ...upstreams.filter(({ url }) => new URL(url).hostname.endsWith('.example.com')).map(({ url }) => url),
];

/** Databases and objects of the development environment; [] if it cannot be read. */
function requiredStores(file: string): string[] {
  try {
    return storesOf(readConfiguration(file, undefined));
  } catch {
    return [];
  }
}
