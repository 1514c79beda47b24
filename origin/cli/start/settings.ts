import { isIPv6 } from 'node:net';
import { type Environment, parseVariables } from '@continuo/origin/config/environment.ts';
import { thisMachine } from '@continuo/origin/model/device/device-choice.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { parseSettings, VARIABLE_NAMES, type Variables } from '@continuo/worker/env/settings.ts';
import * as z from 'zod';

const portNumber = z.coerce.number().int().min(1).max(65_535);

/** The command that starts the Worker decides these: where the origin is, and which keys are valid. */
const SET_AT_START = ['ENVIRONMENT', 'ORIGIN_URL', 'ORIGIN_BINDING', 'DEVELOPMENT_KEY_SHA256'];

/** Secrets that upstreams of the database may name. */
const UPSTREAM_SECRET = /^UPSTREAM_\w+$/;

/** The names in UPSTREAMS of variables with secrets. The Worker checks the rest. */
const secretNames = z.array(z.object({ apiKey: z.string().optional(), secret: z.string().optional() }));

/** The origin's own limit by default. */
const MAX_PREFIX_MIB = 8_192;

const listener = z.object({
  /** Listening address of the endpoint. */
  CONTINUO_HOST: z.string().min(1).default('127.0.0.1'),
  CONTINUO_PORT: portNumber.default(8787),
});

const schema = listener.extend({
  /** Loopback port of the origin. With several, that of the first; the next ones follow. */
  CONTINUO_ORIGIN_PORT: portNumber.default(9100),
  /** CUDA cards, each with an origin of its own: `all`, or their numbers. Absent = one origin. */
  CONTINUO_DEVICES: z
    .string()
    .regex(/^(all|\d{1,3}(,\d{1,3})*)$/, 'expected all, or numbers of cards such as 0,1')
    .optional(),
  CONTINUO_PROVIDER: z.string().optional(),
  CONTINUO_METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  CONTINUO_PREFIX_CACHE_MIB: z.string().optional(),
});
type Values = z.infer<typeof schema>;

/** An origin that the launcher starts. */
export interface LocalOrigin {
  /** Also its name as an upstream. */
  readonly name: string;
  readonly port: number;
  readonly url: string;
  /** Of its own metrics; null = the environment decides. */
  readonly metricsPort: number | null;
  /** Its variables in addition to those of the environment; undefined = without it. */
  readonly variables: Environment;
}

export interface StartSettings {
  readonly host: string;
  readonly port: number;
  /** The endpoint's address. */
  readonly url: string;
  /** One, or one for each card. */
  readonly origins: readonly LocalOrigin[];
  /** Of the metrics of several origins together; null = nowhere. */
  readonly metricsPort: number | null;
  /** Variables for the local Worker, with the secrets of upstreams. */
  readonly workerVariables: Readonly<Record<string, string>>;
}

/** Returns where the endpoint listens. @throws Error one line that names the variable */
export function readListener(environment: Environment): { readonly host: string; readonly port: number } {
  const { CONTINUO_HOST: host, CONTINUO_PORT: port } = parseVariables(listener, environment);
  return { host, port };
}

/**
 * @param cards counts the CUDA cards of this machine
 * @throws Error one line that names the variable
 */
export function readStartSettings(
  environment: Environment,
  cards: () => number = () => thisMachine().driver().cards.length,
): StartSettings {
  const values = parseVariables(schema, environment);
  const { CONTINUO_HOST: host, CONTINUO_PORT: port } = values;
  const devices = devicesOf(values, environment, cards);
  const origins = originsOf(values, devices);
  requireDistinctPorts([
    ['CONTINUO_PORT', port],
    ...origins.map((origin) => ['CONTINUO_ORIGIN_PORT', origin.port] as const),
    ['CONTINUO_METRICS_PORT', values.CONTINUO_METRICS_PORT ?? null],
    ...origins.map((origin) => ['CONTINUO_METRICS_PORT', origin.metricsPort] as const),
  ]);
  return {
    host,
    port,
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    origins,
    metricsPort: (devices && values.CONTINUO_METRICS_PORT) || null,
    workerVariables: workerVariablesOf(environment),
  };
}

/** Each card takes the next ports. @throws Error one line that names the variable */
function requireDistinctPorts(ports: readonly (readonly [variable: string, port: number | null])[]): void {
  const used = new Map<number, string>();
  for (const [variable, port] of ports) {
    // 0 is any free port.
    if (!port) continue;
    if (port > 65_535) throw new Error(`${variable}: port ${port} does not exist; set a lower one.`);
    const other = used.get(port);
    if (other) throw new Error(`${variable}: ${port} is already ${other}; set another one.`);
    used.set(port, variable);
  }
}

/** Returns the numbers of the cards; null = one origin that chooses its device itself. */
function devicesOf(
  { CONTINUO_DEVICES: listed }: Values,
  environment: Environment,
  cards: () => number,
): readonly number[] | null {
  if (listed === undefined) return null;
  for (const conflicting of ['CONTINUO_DEVICE_ID', 'UPSTREAMS'])
    if (environment[conflicting])
      throw new Error(`CONTINUO_DEVICES: ${conflicting} is set, too; unset one of them`);
  if (listed !== 'all') return [...new Set(listed.split(',').map(Number))];
  try {
    const count = cards();
    if (count > 0) return Array.from({ length: count }, (_, device) => device);
  } catch (error) {
    throw new Error(`CONTINUO_DEVICES: the NVIDIA driver ${errorMessage(error)}; check it with nvidia-smi`);
  }
  throw new Error('CONTINUO_DEVICES: the NVIDIA driver finds no CUDA card; check it with nvidia-smi -L');
}

function originsOf(values: Values, devices: readonly number[] | null): readonly LocalOrigin[] {
  const { CONTINUO_ORIGIN_PORT: first } = values;
  const urlOf = (port: number) => `http://127.0.0.1:${port}`;
  if (devices === null)
    return [{ name: 'origin', port: first, url: urlOf(first), metricsPort: null, variables: {} }];
  const { CONTINUO_PROVIDER: provider = 'cuda', CONTINUO_METRICS_PORT: together } = values;
  // Origins that start together would each take a quarter of the same free memory.
  const share = Math.min(
    MAX_PREFIX_MIB,
    Math.floor(process.availableMemory() / 2 ** 20 / 4 / devices.length),
  );
  return devices.map((device, index) => {
    const port = first + index;
    // 0 is any free port.
    const metricsPort = together ? together + 1 + index : null;
    const variables = {
      CONTINUO_DEVICES: undefined,
      CONTINUO_PROVIDER: provider,
      CONTINUO_PREFIX_CACHE_MIB: values.CONTINUO_PREFIX_CACHE_MIB ?? String(share),
      // Several origins on the CPU only show that the rest works.
      ...(provider !== 'cpu' && { CONTINUO_DEVICE_ID: String(device) }),
      ...(metricsPort !== null && { CONTINUO_METRICS_PORT: String(metricsPort) }),
    };
    return { name: `origin-${device}`, port, url: urlOf(port), metricsPort, variables };
  });
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
