import OpenAI, { APIConnectionTimeoutError, APIUserAbortError, RateLimitError } from 'openai';
import { describe, expect, inject, test } from 'vitest';
import { complete, type Logprobs, limitedKey, logprobsOf, running, texts, tokenize } from './direct.ts';

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
  test('leaving the loop over a stream stops the origin at once', async () => {
    let pieces = 0;
    for await (const chunk of await client.completions.create({ ...long, stream: true })) {
      pieces += chunk.choices.length;
      if (pieces === 3) break;
    }
    expect(pieces).toBe(3);
    await expect.poll(running, { timeout: 5_000 }).toBe(0);
  });

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

describe('openai-node: prompts as token ids', () => {
  test('give the same completion and usage as their text, single and in a batch', async () => {
    const prompts = ['Once upon a time', 'def add(a, b):', 'Straße 日本 🙂'];
    const fields = { max_tokens: 8, temperature: 0 };
    const ids = await Promise.all(prompts.map(tokenize));
    const byText = await complete({ prompt: prompts, ...fields });
    const byIds = await client.completions.create({ model, prompt: ids, ...fields });
    expect(byIds.choices.map(({ text }) => text)).toEqual(byText.choices.map(({ text }) => text));
    // The second request finds its prompts in the prefix cache.
    const { prompt_tokens, completion_tokens, total_tokens } = byText.usage;
    expect(byIds.usage).toMatchObject({ prompt_tokens, completion_tokens, total_tokens });
    expect(byIds.usage?.prompt_tokens).toBe(ids.flat().length);
    const alone = await client.completions.create({ model, prompt: ids[1] as number[], ...fields });
    expect(alone.choices[0]?.text).toBe(byText.choices[1]?.text);
  });
});

describe('openai-node: logit_bias', () => {
  test('of 100 forces a token and of -100 bans one', async () => {
    const fields = { prompt: 'Once upon a time', max_tokens: 3, temperature: 0 };
    const [forced] = await tokenize(' king');
    const bias = (id: number, value: number) => ({ model, ...fields, logit_bias: { [id]: value } });
    const kings = await client.completions.create(bias(forced as number, 100));
    expect(kings.choices[0]?.text).toBe(' king king king');
    const [usual] = await texts(fields);
    const [first] = await tokenize(usual as string);
    const without = await client.completions.create({ ...bias(first as number, -100), logprobs: 1 });
    const { tokens } = logprobsOf(without.choices[0]);
    expect(tokens).toHaveLength(3);
    expect(await tokenize(tokens[0] as string)).not.toEqual([first]);
  });
});

describe('openai-node: echo', () => {
  const prompt = 'Der König sagte: 日本 🙂. Then';
  const fields = { model, prompt, max_tokens: 6, echo: true, logprobs: 2, temperature: 0 } as const;

  test('scores a prompt the same from text and from ids, with offsets at the token boundaries', async () => {
    const ids = await tokenize(prompt);
    const fromText = (await client.completions.create(fields)).choices[0];
    const fromIds = (await client.completions.create({ ...fields, prompt: ids })).choices[0];
    expect(fromIds).toEqual(fromText);
    const { tokens, text_offset, token_logprobs } = logprobsOf(fromText);
    expect(tokens).toHaveLength(ids.length + 6);
    expect(token_logprobs.filter((value) => value === null)).toHaveLength(1);
    const points = [...(fromText?.text ?? '')];
    const pieces = text_offset.map((from, at) => points.slice(from, text_offset[at + 1]).join(''));
    expect(pieces.join('')).toBe(fromText?.text);
    for (const [at, token] of tokens.entries()) {
      if (!token.startsWith('bytes:')) expect(pieces[at]).toBe(token);
    }
  });

  test('gives the same text and logprobs streamed and plain', async () => {
    const plain = (await client.completions.create(fields)).choices[0];
    const joined = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    let text = '';
    for await (const chunk of await client.completions.create({ ...fields, stream: true })) {
      for (const choice of chunk.choices) {
        text += choice.text;
        for (const [name, list] of Object.entries(joined) as [keyof Logprobs, unknown[]][]) {
          list.push(...((choice.logprobs as Logprobs | null)?.[name] ?? []));
        }
      }
    }
    expect(text).toBe(plain?.text);
    expect(joined).toEqual(plain?.logprobs);
  });

  test('with max_tokens 0 returns only the prompt, each token scored', async () => {
    const { choices, usage } = await client.completions.create({ ...fields, max_tokens: 0 });
    expect(choices[0]).toMatchObject({ text: prompt, finish_reason: 'length' });
    expect(choices[0]?.logprobs?.tokens).toHaveLength(usage?.prompt_tokens ?? -1);
    expect(usage?.completion_tokens).toBe(0);
  });
});
