import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '../../config/environment.ts';
import { HubError } from './hub-error.ts';

export interface HubSettings {
  /** Without a slash at the end. */
  readonly endpoint: string;
  /** Sent only to the endpoint's origin. */
  readonly token: string | null;
  /** The directory with one directory per repository. */
  readonly cache: string;
  /** Nothing is requested from the hub. */
  readonly offline?: boolean;
}

/**
 * Reads the variables that all Hugging Face tools share: HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH, by
 * default HF_HOME/token), HF_HUB_CACHE (by default HF_HOME/hub), HF_HOME (by default ~/.cache/huggingface)
 * and HF_HUB_OFFLINE. An empty variable counts as absent.
 * @throws HubError
 */
export function readHubSettings(environment: Environment, homeDirectory: string): HubSettings {
  const value = (name: string) => environment[name]?.trim() || undefined;
  const resolve = (given: string) => path.resolve(given.replace(/^~(?=\/|$)/, homeDirectory));
  const systemCache = value('XDG_CACHE_HOME') ?? path.join(homeDirectory, '.cache');
  const home = resolve(value('HF_HOME') ?? path.join(systemCache, 'huggingface'));
  const tokenFile = resolve(value('HF_TOKEN_PATH') ?? path.join(home, 'token'));
  const token = value('HF_TOKEN');
  return {
    endpoint: requireEndpoint(value('HF_ENDPOINT') ?? 'https://huggingface.co'),
    token:
      token === undefined ? requireToken(readToken(tokenFile), tokenFile) : requireToken(token, 'HF_TOKEN'),
    cache: resolve(value('HF_HUB_CACHE') ?? path.join(home, 'hub')),
    offline: /^(1|on|yes|true)$/i.test(value('HF_HUB_OFFLINE') ?? ''),
  };
}

function requireEndpoint(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new HubError('HF_ENDPOINT must be an http or https address');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new HubError('HF_ENDPOINT must be an address without user, password, query and fragment');
  }
  return text.replace(/\/+$/, '');
}

/** Refuses characters that an HTTP header cannot carry, such as copied quotes and newlines. */
function requireToken(token: string | null, source: string): string | null {
  if (token === null || /^[!-~]+$/.test(token)) return token;
  throw new HubError(`${source} is not a valid token: it contains white space or non-ASCII characters`);
}

function readToken(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
