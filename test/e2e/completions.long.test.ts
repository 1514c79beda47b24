import OpenAI, { toFile } from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedSystem } from '../support/shared-system.ts';

/** Tests the whole product with the official client and with raw HTTP. */

const system = sharedSystem();
let client: OpenAI;

beforeAll(() => {
  client = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: system.apiKey, maxRetries: 0 });
});

const model = 'default';

async function streamed(fields: Omit<OpenAI.CompletionCreateParamsStreaming, 'model' | 'stream'>) {
  const texts = new Map<number, string>();
  const reasons = new Map<number, string>();
  let usage: OpenAI.CompletionUsage | undefined;
  const stream = await client.completions.create({
    model,
    ...fields,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) {
      texts.set(choice.index, (texts.get(choice.index) ?? '') + choice.text);
      if (choice.finish_reason) reasons.set(choice.index, choice.finish_reason);
    }
  }
  return { texts: [...texts].sort(([a], [b]) => a - b).map(([, text]) => text), reasons, usage };
}

/** Returns the texts of a stream's events and the number of tokens with logprobs in each. */
async function eventsOf(fields: object): Promise<[string, number][]> {
  const request = { model, prompt: 'The king', max_tokens: 24, seed: 7, ignore_eos: true };
  const stream = await client.completions.create({ ...request, ...fields, stream: true });
  const events: [string, number][] = [];
  for await (const { choices } of stream) {
    for (const { text, logprobs } of choices) events.push([text, logprobs?.tokens?.length ?? 0]);
  }
  return events;
}

describe('the events of a stream', () => {
  test('have one token each with logprobs, whatever text a stop holds back', async () => {
    for (const fields of [{ logprobs: 3 }, { logprobs: 0, stop: [' a', 'zzz', ' the end'] }]) {
      const events = await eventsOf(fields);
      expect(events.every(([, tokens]) => tokens <= 1)).toBe(true);
      const alone = await client.completions.create({
        model,
        prompt: 'The king',
        max_tokens: 24,
        seed: 7,
        ...{ ignore_eos: true },
        ...fields,
      });
      expect(events.map(([text]) => text).join('')).toBe(alone.choices[0]?.text);
      expect(events.reduce((sum, [, tokens]) => sum + tokens, 0)).toBe(
        alone.choices[0]?.logprobs?.tokens?.length,
      );
    }
  });

  test('have at most stream_interval tokens, with logprobs or without', async () => {
    const named = await eventsOf({ logprobs: 0 });
    const texts = named.map(([text]) => text).filter((text) => text !== '');
    const single = await eventsOf({ stream_interval: 1 });
    expect(single.map(([text]) => text).filter((text) => text !== '')).toEqual(texts);
    const merged = await eventsOf({ logprobs: 0, stream_interval: 64 });
    expect(merged.length).toBeLessThan(named.length);
    const pairs = await eventsOf({ logprobs: 0, stream_interval: 2 });
    expect(Math.max(...pairs.map(([, tokens]) => tokens))).toBe(2);
  });
});

describe('the official client', () => {
  test('gets a completion in the documented shape', async () => {
    const completion = await client.completions.create({
      model,
      prompt: 'Once upon a time',
      max_tokens: 12,
      seed: 1,
      ...{ ignore_eos: true },
    });
    expect(completion.id).toMatch(/^cmpl-[A-Za-z0-9]{24,}$/);
    expect(completion.object).toBe('text_completion');
    expect(Math.abs(completion.created - Date.now() / 1000)).toBeLessThan(60);
    expect(completion.choices).toHaveLength(1);
    expect(completion.choices[0]).toMatchObject({ index: 0, logprobs: null });
    expect(['stop', 'length']).toContain(completion.choices[0]?.finish_reason);
    expect(completion.usage?.completion_tokens).toBe(12);
    expect(completion.usage?.total_tokens).toBe((completion.usage?.prompt_tokens ?? 0) + 12);
  });

  test('gets the same text streamed and plain for n in {1, 3} and prompts in {1, 3}', async () => {
    for (const n of [1, 3]) {
      for (const prompts of [['The king'], ['The king', 'def add(a, b):', 'Then']]) {
        const request = { prompt: prompts, n, max_tokens: 16, seed: 7, temperature: 0.9 };
        const plain = await client.completions.create({ model, ...request });
        const stream = await streamed(request);
        expect(stream.texts).toEqual(plain.choices.map(({ text }) => text));
        expect([...stream.reasons.keys()].sort()).toEqual(plain.choices.map(({ index }) => index));
        // The stream finds its prompts in the prefix cache.
        const { prompt_tokens_details: _, ...counts } = plain.usage!;
        expect(stream.usage).toMatchObject(counts);
      }
    }
  });

  test('raises its own error classes', async () => {
    const failing = (fields: object) => client.completions.create({ model, prompt: 'x', ...fields } as never);
    await expect(failing({ n: 0 })).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    await expect(failing({ model: 'no-such-model' })).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    const stranger = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'sk-nobody', maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });

  test('lists the models and fetches one by its id', async () => {
    const { data } = await client.models.list();
    expect(data.map(({ id }) => id)).toContain('continuo-mini');
    expect(await client.models.retrieve('continuo-mini')).toMatchObject({
      id: 'continuo-mini',
      object: 'model',
    });
  });
});

describe('the built-in model', () => {
  test('continues a Python function and an English story', async () => {
    const python = await client.completions.create({
      model,
      prompt: 'def factorial(n):\n    """Return the factorial of n."""\n',
      max_tokens: 80,
      temperature: 0,
      stop: '\n\n\n',
    });
    expect(python.choices[0]?.finish_reason).toBe('stop');
    const lines = (python.choices[0]?.text ?? '').trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^( {4}.*|)$/);
    expect(lines.at(-1)).toMatch(/^ +return .*n/);
    const story = await client.completions.create({
      model,
      prompt: 'Once upon a time',
      max_tokens: 48,
      temperature: 0,
    });
    expect(story.choices[0]?.text).toMatch(/ (the|a|and|was|there) /);
  });

  test('scores an echoed prompt: one entry per token, null first, offsets into the text', async () => {
    const prompt = 'Der König sagte: 日本 🙂.';
    const completion = await client.completions.create({
      model,
      prompt,
      max_tokens: 1,
      echo: true,
      logprobs: 1,
      temperature: 0,
    });
    const [choice] = completion.choices;
    const logprobs = choice?.logprobs;
    const count = (completion.usage?.prompt_tokens ?? 0) + 1;
    expect(choice?.text.startsWith(prompt)).toBe(true);
    for (const list of [
      logprobs?.tokens,
      logprobs?.token_logprobs,
      logprobs?.top_logprobs,
      logprobs?.text_offset,
    ]) {
      expect(list).toHaveLength(count);
    }
    expect(logprobs?.token_logprobs?.[0]).toBeNull();
    for (const value of logprobs?.token_logprobs?.slice(1) ?? []) expect(value).toBeLessThanOrEqual(0);
    expect(logprobs?.text_offset?.[0]).toBe(0);
  });
});

describe('raw HTTP', () => {
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${system.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json', ...headers },
      body,
    });

  test('a disconnected client frees its slot', async () => {
    const generated = async () => {
      const metrics = await (await fetch(`${system.metricsUrl}/metrics`)).text();
      return Number(/^continuo_origin_completion_tokens_total\S* (\d+)$/m.exec(metrics)?.[1]);
    };
    const before = await generated();
    const [clients, tokens] = [12, 1900];
    const leaving = Array.from({ length: clients }, async () => {
      const abort = new AbortController();
      const response = await fetch(`${system.url}/v1/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, prompt: 'Once', max_tokens: tokens, stream: true, ignore_eos: true }),
        signal: abort.signal,
      });
      await response.body?.getReader().read();
      abort.abort();
    });
    await Promise.all(leaving);
    const running = async () =>
      ((await (await fetch(`${system.metricsUrl}/health`)).json()) as { running: number }).running;
    await expect.poll(running).toBe(0);
    // They did not end on their own.
    expect((await generated()) - before).toBeLessThan(clients * tokens);
    const answer = await post('/v1/completions', JSON.stringify({ model, prompt: 'Once', max_tokens: 2 }));
    expect(answer.status).toBe(200);
  });

  test('a client that disconnects after three chunks stops the origin, frees its slot and is billed for the generated tokens', async () => {
    const admin = async (path: string, body?: object) => {
      const response = await fetch(`${system.url}/admin/v1${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return (await response.json()) as { key: string; total: Record<string, number> };
    };
    await admin('/tenants', { id: 'leaver', name: 'leaver', limits: { concurrent_requests: 1 } });
    const { key } = await admin('/keys', { tenant: 'leaver', name: 'leaver' });
    const leaver = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: key, maxRetries: 0 });
    const asked = { model, prompt: 'Once', max_tokens: 1900, n: 4 };
    let chunks = 0;
    for await (const _ of await leaver.completions.create({
      ...asked,
      stream: true,
      logit_bias: { 0: -100 },
    })) {
      chunks += 1;
      if (chunks === 3) break;
    }
    const next = () =>
      leaver.completions
        .create({ model, prompt: 'Once', max_tokens: 2, ...{ ignore_eos: true } })
        .catch(() => null);
    await expect.poll(next).not.toBeNull();
    const usage = async () => (await admin('/usage?tenant=leaver')).total;
    await expect.poll(async () => (await usage()).requests).toBeGreaterThanOrEqual(2);
    const { cancelled, completion_tokens: made = 0 } = await usage();
    expect(cancelled).toBe(1);
    expect(made).toBeGreaterThanOrEqual(3 + 2);
    expect(made).toBeLessThan(asked.max_tokens * asked.n);
  });

  test('an infill reaches the model as its template and ends on each marker', async () => {
    interface Answer {
      readonly choices: { text: string; finish_reason: string; prompt_token_ids: number[] }[];
      readonly usage: { prompt_tokens: number };
    }
    const complete = async (fields: object): Promise<Answer> =>
      (await post('/v1/completions', JSON.stringify({ model, temperature: 0, ...fields }))).json() as never;
    const tokenize = async (prompt: string): Promise<number[]> => {
      const response = await post('/tokenize', JSON.stringify({ prompt, add_special_tokens: false }));
      return ((await response.json()) as { tokens: number[] }).tokens;
    };
    const [prompt, suffix] = ['def add(a, b):\n    return ', '\n\nprint(add(1, 2))\n'];
    const [before, after] = [await tokenize(prompt), await tokenize(suffix)];
    const markers = await tokenize('<|gap_prefix|><|gap_suffix|><|gap_middle|>');
    const template = [markers[0], markers[1], ...after, markers[2], ...before] as number[];
    const infill = { prompt, suffix, max_tokens: 8, echo: true, return_token_ids: true };
    const { choices, usage } = await complete(infill);
    expect(choices[0]?.prompt_token_ids).toEqual(before);
    expect(usage.prompt_tokens).toBe(template.length);
    const byHand = await complete({ prompt: template, max_tokens: 8, stop_token_ids: markers });
    expect(choices[0]?.text).toBe(prompt + byHand.choices[0]?.text);
    expect(markers).toHaveLength(3);
    for (const marker of markers) {
      const forced = { max_tokens: 3, logit_bias: { [marker]: 100 } };
      const ended = { text: prompt, finish_reason: 'stop' };
      expect((await complete({ ...infill, ...forced })).choices[0]).toMatchObject(ended);
      expect((await complete({ prompt, ...forced })).choices[0]).toMatchObject({ finish_reason: 'length' });
    }
    // The end token stays hidden: "include_stop_str_in_output" applies to stop strings only.
    const [end] = await tokenize('<|endoftext|>');
    const kept = { max_tokens: 3, logit_bias: { [end as number]: 100 }, include_stop_str_in_output: true };
    expect((await complete({ ...infill, ...kept })).choices[0]).toMatchObject({
      text: prompt,
      finish_reason: 'stop',
      stop_reason: null,
    });
  });

  test('every answer has x-request-id, and every error has the envelope', async () => {
    for (const [path, body, status] of [
      ['/v1/completions', '{', 400],
      ['/v1/completions', '[]', 400],
      ['/v1/completions', '{"model":"default"}', 400],
      ['/v1/nothing', '{}', 404],
      ['/v1/models', '{}', 405],
    ] as const) {
      const response = await post(path, body);
      expect([path, body, response.status]).toEqual([path, body, status]);
      expect(response.headers.get('x-request-id')).toMatch(/\S{8,}/);
      const { error } = (await response.json()) as { error: object };
      expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type']);
    }
  });
});

test('a batch of the official client gives the same text as the request itself', async () => {
  const body = { model, prompt: 'Once upon a time', max_tokens: 8, temperature: 0 };
  const alone = await client.completions.create(body);
  const line = JSON.stringify({ custom_id: 'one', method: 'POST', url: '/v1/completions', body });
  const input = await toFile(Buffer.from(line), 'in.jsonl');
  const { id: input_file_id } = await client.files.create({ file: input, purpose: 'batch' });
  const order = { input_file_id, endpoint: '/v1/completions', completion_window: '24h' } as const;
  const { id } = await client.batches.create(order);
  await expect.poll(async () => (await client.batches.retrieve(id)).status).toBe('completed');
  const { output_file_id } = await client.batches.retrieve(id);
  const output = await (await client.files.content(output_file_id!)).text();
  expect(JSON.parse(output)).toMatchObject({
    custom_id: 'one',
    response: { status_code: 200, body: { choices: alone.choices, usage: { completion_tokens: 8 } } },
  });
});
