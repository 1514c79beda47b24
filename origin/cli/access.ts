import type { Environment } from '@continuo/origin/config/environment.ts';
import { readTextFile } from '@continuo/origin/config/named-file.ts';
import { CommandError, EXIT } from '@continuo/origin/terminal/program.ts';
import { readState } from './start/development-state.ts';
import { stateDirectory } from './start/installation.ts';

/** Finds the server and the key: from options, the environment, or the state of `npm start`. */

export interface AccessOptions {
  readonly url?: string;
  readonly keyFile?: string;
}

/** The server and the key of a command. */
export interface Access {
  readonly url: URL;
  readonly key: string;
}

/** Returns the address of the server that `npm start` runs with the same environment. */
export function localAddress({ CONTINUO_HOST, CONTINUO_PORT }: Environment): string {
  const host = CONTINUO_HOST || '127.0.0.1';
  return `http://${host.includes(':') ? `[${host}]` : host}:${CONTINUO_PORT || '8787'}`;
}

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** Returns whether an address is the local machine's, or the configured one of the local server. */
export function isLocal({ hostname }: URL, environment: Environment): boolean {
  const localHost = URL.parse(localAddress(environment))?.hostname;
  return hostname === localHost || LOOPBACK.includes(hostname);
}

/**
 * Takes this machine out of the proxy that NODE_USE_ENV_PROXY switches on, because a proxy cannot reach it.
 * Child processes inherit the variable.
 */
export function bypassProxyForLocal(environment: Record<string, string | undefined>): void {
  const variable = environment.no_proxy === undefined ? 'NO_PROXY' : 'no_proxy';
  const given = environment[variable];
  if (environment.NODE_USE_ENV_PROXY !== '1' || given === '*') return;
  const localHost = URL.parse(localAddress(environment))?.hostname;
  environment[variable] = [given, localHost, ...LOOPBACK].filter(Boolean).join(',');
}

/** @throws CommandError if it is not an HTTP address */
export function findAddress({ url }: AccessOptions, environment: Environment): URL {
  const text = url || environment.CONTINUO_URL || localAddress(environment);
  const address = URL.parse(text);
  if (address && ['http:', 'https:'].includes(address.protocol)) return address;
  const message = `'${text}' is not an address such as https://api.example.com.`;
  throw new CommandError(message, url ? EXIT.usage : EXIT.failed);
}

/** @throws CommandError that says how to set a key if there is none */
export function findAccess(
  options: AccessOptions,
  environment: Environment,
  kind: 'admin' | 'caller',
): Access {
  const url = findAddress(options, environment);
  const variable = kind === 'admin' ? 'CONTINUO_ADMIN_KEY' : 'CONTINUO_API_KEY';
  const { keyFile = null } = options;
  const set = keyFile === null ? environment[variable]?.trim() : readTextFile(keyFile).trim();
  // Also an empty file: another key must not take the place of the one that was meant.
  if ((keyFile !== null || set) && !/^[ -~]+$/.test(set ?? ''))
    throw new CommandError(`${keyFile ?? variable} must be the key: one line of ASCII characters.`);
  const isOwn = isLocal(url, environment);
  // The key that `npm start` or `continuo serve` created. Only its own server accepts it.
  const key = set || (isOwn && readState(stateDirectory(environment))?.apiKey);
  if (key) return { url, key };
  const how = isOwn ? 'Run continuo serve, which creates one, or set' : 'Set';
  const name = kind === 'admin' ? 'admin key' : 'API key';
  throw new CommandError(`There is no ${name}. ${how} ${variable}.`);
}
