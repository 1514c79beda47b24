import { isIPv6 } from 'node:net';
import { type Environment, parseVariables } from '@continuo/origin/config/environment.ts';
import { parseSettings, VARIABLE_NAMES, type Variables } from '@continuo/worker/env/settings.ts';
import * as z from 'zod';

const portNumber = z.coerce.number().int().min(1).max(65_535);

/** The command that starts the Worker decides these: where the origin is, and which keys are valid. */
const SET_AT_START = ['ENVIRONMENT', 'ORIGIN_URL', 'ORIGIN_BINDING', 'DEVELOPMENT_KEY_SHA256'];

/** Secrets that upstreams of the database may name. */
const UPSTREAM_SECRET = /^UPSTREAM_\w+$/;

/** The names in UPSTREAMS of variables with secrets. The Worker checks the rest. */
const secretNames = z.array(z.object({ apiKey: z.string().optional(), secret: z.string().optional() }));

const listener = z.object({
  /** Listening address of the endpoint. */
  CONTINUO_HOST: z.string().min(1).default('127.0.0.1'),
  CONTINUO_PORT: portNumber.default(8787),
});

const schema = listener.extend({
  /** Loopback port of the origin. */
  CONTINUO_ORIGIN_PORT: portNumber.default(9100),
});

export interface StartSettings {
  readonly host: string;
  readonly port: number;
  /** The endpoint's address. */
  readonly url: string;
  readonly originPort: number;
  /** Address of the origin for launcher and Worker. */
  readonly originUrl: string;
  /** Variables for the local Worker, with the secrets of upstreams. */
  readonly workerVariables: Readonly<Record<string, string>>;
}

/** Returns where the endpoint listens. @throws Error one line that names the variable */
export function readListener(environment: Environment): { readonly host: string; readonly port: number } {
  const { CONTINUO_HOST: host, CONTINUO_PORT: port } = parseVariables(listener, environment);
  return { host, port };
}

/** @throws Error one line that names the variable */
export function readStartSettings(environment: Environment): StartSettings {
  const values = parseVariables(schema, environment);
  const { CONTINUO_HOST: host, CONTINUO_PORT: port, CONTINUO_ORIGIN_PORT: originPort } = values;
  if (port === originPort)
    throw new Error(`CONTINUO_ORIGIN_PORT: ${port} is already CONTINUO_PORT; set another one.`);
  return {
    host,
    port,
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    originPort,
    originUrl: `http://127.0.0.1:${originPort}`,
    workerVariables: workerVariablesOf(environment),
  };
}

/**
 * Returns the variables of the Worker that the environment sets, with the secrets that UPSTREAMS names and
 * those whose names begin with `UPSTREAM_`.
 * @throws Error one line that names the first invalid variable
 */
export function workerVariablesOf(environment: Environment): Record<string, string> {
  const present = (names: readonly string[]): Record<string, string> =>
    Object.fromEntries(names.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
  const variables = present(VARIABLE_NAMES.filter((name) => !SET_AT_START.includes(name)));
  parseSettings(variables as Variables);
  let listed: unknown;
  try {
    listed = JSON.parse(environment.UPSTREAMS || '[]');
  } catch {
    throw new Error('UPSTREAMS: expected JSON, for example [{"kind":"openai",…}]; see docs/deploying.md');
  }
  const { data = [] } = secretNames.safeParse(listed);
  return {
    ...variables,
    ...present(Object.keys(environment).filter((name) => UPSTREAM_SECRET.test(name))),
    ...present(data.flatMap(({ apiKey = [], secret = [] }) => [apiKey, secret].flat())),
  };
}
