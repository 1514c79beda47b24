import OpenAI, { toFile } from 'openai';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedSystem } from '../support/shared-system.ts';

/** Tests the whole product with the official client and with plain requests. */

const system = sharedSystem();
let client: OpenAI;

beforeAll(() => {
  client = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: system.apiKey, maxRetries: 0 });
});

const model = 'default';

const ask = async <T>(path: string, body?: object): Promise<T> =>
  (await system.request(path, body)).json() as Promise<T>;

describe('the official client', () => {
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
});

test('a client that disconnects after three chunks stops the origin, frees its slot and is billed for the generated tokens', async () => {
  await ask('/admin/v1/tenants', { id: 'leaver', name: 'leaver', limits: { concurrent_requests: 1 } });
  const { key } = await ask<{ key: string }>('/admin/v1/keys', { tenant: 'leaver', name: 'leaver' });
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
  const usage = async () =>
    (await ask<{ total: Record<string, number> }>('/admin/v1/usage?tenant=leaver')).total;
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
  const complete = (fields: object) => ask<Answer>('/v1/completions', { model, temperature: 0, ...fields });
  const tokenize = async (prompt: string) =>
    (await ask<{ tokens: number[] }>('/tokenize', { prompt, add_special_tokens: false })).tokens;
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
