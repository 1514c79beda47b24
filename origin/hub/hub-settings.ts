import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '../config/environment.ts';
import { HubError } from './hub-error.ts';

/** Where models come from and where they are kept, in the variables that all Hugging Face tools share. */

export interface HubSettings {
  /** Without a slash at the end. */
  readonly endpoint: string;
  /** Sent to the endpoint's own origin alone. */
  readonly token: string | null;
  /** The directory with one directory per repository. */
  readonly cache: string;
}

/**
 * HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH, by default HF_HOME/token), HF_HUB_CACHE (by default HF_HOME/hub)
 * and HF_HOME (by default ~/.cache/huggingface). An empty variable counts as absent.
 * @throws HubError
 */
export function readHubSettings(environment: Environment, homeDirectory: string): HubSettings {
  const value = (name: string) => environment[name]?.trim() || undefined;
  const caches = value('XDG_CACHE_HOME') ?? path.join(homeDirectory, '.cache');
  const home = value('HF_HOME') ?? path.join(caches, 'huggingface');
  const resolve = (given: string) => path.resolve(given.replace(/^~(?=\/|$)/, homeDirectory));
  const tokenFile = resolve(value('HF_TOKEN_PATH') ?? path.join(resolve(home), 'token'));
  const given = value('HF_TOKEN');
  return {
    endpoint: requireEndpoint(value('HF_ENDPOINT') ?? 'https://huggingface.co'),
    token: requireToken(given ?? readToken(tokenFile), given === undefined ? tokenFile : 'HF_TOKEN'),
    cache: resolve(value('HF_HUB_CACHE') ?? path.join(resolve(home), 'hub')),
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

/** No header takes any other characters; they come with quotes or lines that were copied along. */
function requireToken(token: string | null, source: string): string | null {
  if (token === null || /^[!-~]+$/.test(token)) return token;
  throw new HubError(`${source} is not a token: it holds white space or characters beyond ASCII`);
}

function readToken(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
