import OpenAI, { APIConnectionTimeoutError, APIUserAbortError, RateLimitError } from 'openai';
import { describe, expect, inject, test } from 'vitest';
import { limitedKey, running } from './direct.ts';

/** The openai package for Node. Shapes, error classes and ordinary streams are tested in test/e2e. */

const served = inject('served');
const model = 'default';

/** Returns a client, and the list of the statuses that it receives, retries included. */
function connect(options: { apiKey?: string; maxRetries?: number; timeout?: number } = {}) {
  const statuses: number[] = [];
  const recorded: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    statuses.push(response.status);
    return response;
  };
  const client = new OpenAI({
    baseURL: `${served.url}/v1`,
    apiKey: served.apiKey,
    maxRetries: 0,
    fetch: recorded,
    ...options,
  });
  return { client, statuses };
}

const { client } = connect();
/** A generation that takes longer than any test waits. */
const long = { model, prompt: 'Once upon a time', max_tokens: 2000, temperature: 0, ignore_eos: true };

describe('openai-node: refusals', () => {
  test('a rate limit 429 is retried after the time in retry-after, and then succeeds', async () => {
    const apiKey = await limitedKey('one-at-a-time', { concurrent_requests: 1 });
    const holder = connect({ apiKey }).client;
    const stream = await holder.completions.create({ ...long, stream: true });
    const { client: waiting, statuses } = connect({ apiKey, maxRetries: 4 });
    const answer = waiting.completions.create({ model, prompt: 'The king', max_tokens: 4, seed: 3 });
    await expect.poll(() => statuses.length).toBeGreaterThan(0);
    stream.controller.abort();
    expect((await answer).usage?.completion_tokens).toBe(4);
    expect(statuses.slice(0, -1).every((status) => status === 429)).toBe(true);
    expect(statuses.length).toBeGreaterThan(1);
    expect(statuses.at(-1)).toBe(200);
  });

  test('a 429 for an exhausted budget is not retried', async () => {
    const apiKey = await limitedKey('spent', { tokens_per_day: 10 });
    const { client: poor, statuses } = connect({ apiKey, maxRetries: 5 });
    const error = await poor.completions
      .create({ ...long, max_tokens: 100 })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ status: 429, code: 'insufficient_quota' });
    expect(statuses).toEqual([429]);
  });

  test('rate limits and the request id can be read from an answer', async () => {
    const apiKey = await limitedKey('counted', { requests_per_minute: 2 });
    const { client: counted, statuses } = connect({ apiKey });
    const call = () => counted.completions.create({ model, prompt: 'x', max_tokens: 1 });
    const { data, response, request_id } = await call().withResponse();
    expect(response.headers.get('x-request-id')).toBe(request_id);
    expect(data.usage?.completion_tokens).toBe(1);
    expect(request_id).toMatch(/\S{8,}/);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('2');
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('1');
    await call();
    const refused = (await call().catch((thrown: unknown) => thrown)) as RateLimitError;
    expect(refused).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'requests' });
    expect(refused.headers.get('x-should-retry')).toBe('true');
    expect(statuses).toEqual([200, 200, 429]);
  });
});

describe('openai-node: disconnects', () => {
  test('aborting the signal of a stream stops the origin at once', async () => {
    const abort = new AbortController();
    const stream = await client.completions.create({ ...long, stream: true }, { signal: abort.signal });
    const pieces: string[] = [];
    for await (const { choices } of stream) {
      pieces.push(choices[0]?.text ?? '');
      if (pieces.length === 3) abort.abort();
    }
    expect(pieces.length).toBeLessThan(long.max_tokens);
    await expect.poll(running, { timeout: 5_000 }).toBe(0);
  });

  // The local runtime notices a disconnected client only when it writes, so the origin may generate to the
  // end here.
  test('a timeout and an abort of a plain request raise the client’s own errors, and other requests are served', async () => {
    const short = { ...long, max_tokens: 600 };
    const hasty = connect({ timeout: 200 }).client;
    await expect(hasty.completions.create(short)).rejects.toBeInstanceOf(APIConnectionTimeoutError);
    const signal = AbortSignal.timeout(200);
    await expect(client.completions.create(short, { signal })).rejects.toBeInstanceOf(APIUserAbortError);
    const answer = await client.completions.create({ model, prompt: 'The king', max_tokens: 4 });
    expect(answer.usage?.completion_tokens).toBe(4);
    await expect.poll(running, { timeout: 60_000 }).toBe(0);
  });
});
