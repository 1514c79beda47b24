import { inject } from 'vitest';

/** Plain HTTP requests, as the reference for the clients' results. */

export interface Logprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
  readonly text_offset: readonly number[];
}

export interface Completion {
  readonly choices: readonly {
    readonly index: number;
    readonly text: string;
    readonly logprobs: Logprobs | null;
    readonly finish_reason: string;
  }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
  };
}

/** @throws Error if there are none, which no test expects */
export function logprobsOf(choice: { readonly logprobs?: unknown } | undefined): Logprobs {
  if (!choice?.logprobs) throw new Error('The answer has no logprobs.');
  return choice.logprobs as Logprobs;
}

async function send<T>(method: string, path: string, body?: object): Promise<T> {
  const { url, apiKey } = inject('served');
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

export const complete = (fields: object): Promise<Completion> =>
  send('POST', '/v1/completions', { model: 'default', ...fields });

/** Texts of all choices in order. */
export const texts = async (fields: object): Promise<string[]> =>
  (await complete(fields)).choices.map(({ text }) => text);

export const tokenize = async (prompt: string): Promise<number[]> =>
  (await send<{ tokens: number[] }>('POST', '/tokenize', { prompt, add_special_tokens: false })).tokens;

export const tokenizerInfo = (): Promise<{ bos_token: string; eos_token: string }> =>
  send('GET', '/tokenizer_info');

/** Returns the logprob of `continuation` after `context` in a request of its own, and if it is greedy. */
export async function loglikelihood(context: number[], continuation: number[]): Promise<[number, boolean]> {
  const prompt = [...context, ...continuation];
  const { choices } = await complete({ prompt, max_tokens: 0, echo: true, logprobs: 1 });
  const { token_logprobs, top_logprobs } = logprobsOf(choices[0]);
  const values = token_logprobs.slice(context.length) as number[];
  const best = top_logprobs.slice(context.length).map((top) => Math.max(...Object.values(top ?? {})));
  return [values.reduce((sum, value) => sum + value, 0), values.every((value, at) => value === best[at])];
}

export const admin = <T>(path: string, body: object): Promise<T> => send('POST', `/admin/v1${path}`, body);

/** Creates a tenant with these limits and returns its key. */
export async function limitedKey(tenant: string, limits: Readonly<Record<string, number>>): Promise<string> {
  await admin('/tenants', { id: tenant, name: tenant, limits });
  return (await admin<{ key: string }>('/keys', { tenant, name: 'client' })).key;
}

/** Returns the number of requests that the origin is working on. */
export async function running(): Promise<number> {
  const response = await fetch(`${inject('served').metricsUrl}/health`);
  return ((await response.json()) as { running: number }).running;
}
