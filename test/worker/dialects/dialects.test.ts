import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { NEUTRAL_SAMPLING, type SamplingParameters, tokenLimitOf } from '../../../shared/sampling.ts';
import { type DialectName, dialectName } from '../../../shared/tenant.ts';
import { admin, tenantWithKey } from '../admin/admin-client.ts';
import { MODEL } from '../support/fake-origin.ts';
import { type Chunk, chunksOf } from '../support/sse.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

/** The documented behaviour of each server, independent of the Worker's own table. */
interface Habits {
  readonly maxTokens: number;
  readonly sampling: Partial<SamplingParameters>;
  readonly includeStop: boolean;
  readonly contextOverflow: 'truncate' | 'error';
  readonly logprobsCeiling: number;
  /** Whether the last chunk of the last choice has the usage without a request for it. */
  readonly usageUnasked: boolean;
  readonly codeOf400: unknown;
  readonly anyModel: boolean;
  readonly modelOptional: boolean;
  readonly checksStrict: boolean;
  /** Whose ranges sampling fields and `stop` have. */
  readonly ranges: string;
}

const OPENAI: Habits = {
  maxTokens: 16,
  sampling: {},
  includeStop: false,
  contextOverflow: 'truncate',
  logprobsCeiling: 5,
  usageUnasked: false,
  codeOf400: 'invalid_type',
  anyModel: false,
  modelOptional: false,
  checksStrict: true,
  ranges: "OpenAI's",
};
const LAX: Habits = { ...OPENAI, checksStrict: false };

const BEHAVIOURS: Readonly<Record<DialectName, Habits>> = {
  openai: OPENAI,
  fireworks: { ...LAX, includeStop: true, logprobsCeiling: 20, usageUnasked: true },
  llamacpp: {
    ...LAX,
    maxTokens: -1,
    sampling: {
      temperature: 0.8,
      topP: 0.95,
      topK: 40,
      minP: 0.05,
      repetitionPenalty: 1.1,
      repeatLastN: 64,
      penaltyScope: 'all',
    },
    logprobsCeiling: 20,
    codeOf400: 400,
    anyModel: true,
    modelOptional: true,
    ranges: "llama.cpp's",
  },
  mistralrs: { ...LAX, contextOverflow: 'error', logprobsCeiling: 20, modelOptional: true },
  vllm: { ...LAX, contextOverflow: 'error', logprobsCeiling: 20, codeOf400: 400, modelOptional: true },
};

const { worker, origin } = sharedWorker();

type Fields = Readonly<Record<string, unknown>>;

const speaking = (dialect: string, fields: Fields = {}) =>
  worker.post({ model: 'default', prompt: 'Hi', ...fields }, { headers: { 'x-dialect': dialect } });

/** Sends a request that all servers answer with 200. */
async function accepted(dialect: string, fields: Fields = {}): Promise<string> {
  const response = await speaking(dialect, fields);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return text;
}

const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: unknown } }).error.code;

test('without the header, a tenant of openai may have 20 alternatives and optional properties in strict schemas', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const strict = {
    response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } },
  };
  for (const fields of [{ logprobs: 20 }, strict]) {
    expect((await worker.post({ model: 'default', prompt: 'Hi', ...fields })).status).toBe(200);
    expect((await speaking('openai', fields)).status).toBe(400);
  }
});

describe.each(Object.entries(BEHAVIOURS))('%s', (dialect, behaviour) => {
  test('applies its defaults', async () => {
    await accepted(dialect);
    const { includeStop, contextOverflow } = behaviour;
    const maxTokens = tokenLimitOf(behaviour.maxTokens);
    expect(origin.requests[0]).toMatchObject({ maxTokens, includeStop, contextOverflow });
    expect(origin.requests[0]?.sampling).toEqual({ ...NEUTRAL_SAMPLING, ...behaviour.sampling });
  });

  test('tells a model that is loading from an overloaded server, also where the code is the status', async () => {
    const errorFor = async (code: string) => {
      const error = { message: 'Wait.', type: 'server_error', param: null, code };
      origin.script = (_, wire) => wire.refuse(503, { error });
      return ((await (await speaking(dialect)).json()) as { error: unknown }).error;
    };
    const named = behaviour.codeOf400 !== 400;
    expect(await errorFor('model_loading')).toMatchObject(
      named ? { code: 'model_loading', type: 'server_error' } : { code: 503, type: 'unavailable_error' },
    );
    expect(await errorFor('server_is_overloaded')).toMatchObject({
      code: named ? 'server_is_overloaded' : 503,
      type: 'server_error',
    });
  });

  test('lets request fields override its defaults', async () => {
    await accepted(dialect, {
      max_tokens: 3,
      temperature: 0.5,
      top_p: 0.4,
      top_k: 7,
      min_p: 0.1,
      repeat_penalty: 1.5,
      repeat_last_n: 5,
      include_stop_str_in_output: !behaviour.includeStop,
      context_length_exceeded_behavior: behaviour.contextOverflow === 'error' ? 'truncate' : 'error',
    });
    expect(origin.requests[0]).toMatchObject({
      maxTokens: 3,
      includeStop: !behaviour.includeStop,
      contextOverflow: behaviour.contextOverflow === 'error' ? 'truncate' : 'error',
      sampling: {
        temperature: 0.5,
        topP: 0.4,
        topK: 7,
        minP: 0.1,
        repetitionPenalty: 1.5,
        repeatLastN: 5,
        penaltyScope: behaviour.sampling.penaltyScope ?? 'generated',
      },
    });
  });

  test('limits the number of alternatives, and a refusal names the limit of the dialect', async () => {
    const { logprobsCeiling: ceiling, codeOf400 } = behaviour;
    for (const name of ['logprobs', 'top_logprobs', 'n_probs', 'prompt_logprobs']) {
      await accepted(dialect, { [name]: ceiling });
      for (const value of [ceiling + 1, 100]) {
        const refused = await speaking(dialect, { [name]: value });
        expect(refused.status).toBe(400);
        expect(await refused.clone().text()).toContain(`<= ${ceiling}, but got ${value} instead`);
        expect(await codeOf(refused)).toBe(codeOf400 === 400 ? 400 : 'integer_above_max_value');
      }
    }
  });

  test('sends the usage of a stream where its clients expect it', async () => {
    const usages = (chunks: readonly Chunk[]) => chunks.map(({ usage }) => usage?.completion_tokens ?? null);
    const unasked = chunksOf(await accepted(dialect, { stream: true, max_tokens: 2, n: 2 }));
    const last = behaviour.usageUnasked ? 4 : null;
    expect(usages(unasked)).toEqual([...unasked.slice(1).map(() => null), last]);
    expect(unasked.at(-1)?.choices).toMatchObject([{ text: '', finish_reason: 'length' }]);
    const stream_options = { include_usage: true };
    const asked = chunksOf(await accepted(dialect, { stream: true, max_tokens: 2, n: 2, stream_options }));
    expect(usages(asked)).toEqual([...asked.slice(1).map(() => null), 4]);
    expect(asked.at(-1)?.choices).toEqual([]);
  });

  test('writes error codes as names or numbers, also before authentication', async () => {
    expect(await codeOf(await speaking(dialect, { n: 'x' }))).toBe(behaviour.codeOf400);
    const headers = { 'x-dialect': dialect };
    const stranger = await fetch(`${worker.url}/v1/completions`, { method: 'POST', headers });
    expect(await codeOf(stranger)).toBe(behaviour.codeOf400 === 400 ? 401 : 'missing_api_key');
  });

  test('accepts the served model’s name, or any name', async () => {
    expect((await speaking(dialect, { model: 'gpt-3.5-turbo' })).status).toBe(behaviour.anyModel ? 200 : 404);
    const long = await speaking(dialect, { model: 'x'.repeat(257) });
    expect(long.status).toBe(behaviour.anyModel ? 400 : 404);
    origin.models = [MODEL, { ...MODEL, id: 'second' }];
    expect((await speaking(dialect, { model: 'gpt-3.5-turbo' })).status).toBe(404);
  });

  test('has the ranges of its server', async () => {
    const { status } = await speaking(dialect, { temperature: 2.5 });
    expect(status).toBe(behaviour.ranges === "llama.cpp's" ? 200 : 400);
  });

  test('requires a model, or uses the default model', async () => {
    const { status } = await speaking(dialect, { model: undefined });
    expect(status).toBe(behaviour.modelOptional ? 200 : 400);
  });

  test('counts text offsets from the start of the returned text', async () => {
    const offsets = async (fields: Fields) => {
      const { choices } = JSON.parse(await accepted(dialect, { max_tokens: 2, logprobs: 0, ...fields }));
      return choices[0].logprobs.text_offset;
    };
    expect(await offsets({})).toEqual([0, 2]);
    expect(await offsets({ echo: true })).toEqual([0, 1, 2, 4]);
  });

  test('applies as the tenant’s default unless the header overrides it', async () => {
    const { key } = await tenantWithKey(worker, `tenant-${dialect}`);
    await admin(worker, 'PATCH', `/tenants/tenant-${dialect}`, { dialect });
    const headers = { authorization: `Bearer ${key}` };
    const body = { model: MODEL.id, prompt: 'Hi' };
    expect((await worker.post(body, { headers })).status).toBe(200);
    expect(origin.requests[0]).toMatchObject({
      maxTokens: tokenLimitOf(behaviour.maxTokens),
      includeStop: behaviour.includeStop,
      contextOverflow: behaviour.contextOverflow,
    });
    expect((await worker.post(body, { headers: { ...headers, 'x-dialect': 'openai' } })).status).toBe(200);
    expect(origin.requests[1]).toMatchObject({
      maxTokens: 16,
      includeStop: false,
      contextOverflow: 'truncate',
    });
  });

  test('applies as the tenant’s default to all errors', async () => {
    const id = `refused-${dialect}`;
    const { key } = await tenantWithKey(worker, id);
    await admin(worker, 'PATCH', `/tenants/${id}`, { dialect });
    const asked = { headers: { authorization: `Bearer ${key}` } };
    const sent = (extra: Readonly<Record<string, string>>) =>
      worker.post('{}', { headers: { ...asked.headers, ...extra } });
    const numbered = behaviour.codeOf400 === 400;
    const compressed = { 'content-encoding': 'br' };
    expect(await codeOf(await sent({ 'idempotency-key': 'a b' }))).toBe(numbered ? 400 : 'invalid_value');
    for (const wrapped of [{ 'idempotency-key': 'a' }, { 'x-resumable': 'true' }]) {
      const refused = await sent({ ...wrapped, ...compressed });
      expect(await codeOf(refused)).toBe(numbered ? 415 : 'unsupported_media_type');
    }
    const rest = await worker.request('/v1/completions/cmpl-none/stream', asked);
    expect(await codeOf(rest)).toBe(numbered ? 404 : 'not_found');
    await admin(worker, 'PATCH', `/tenants/${id}`, { suspended: true });
    expect(await codeOf(await sent({}))).toBe(numbered ? 403 : 'tenant_suspended');
  });
});

test('match the table in docs/dialects.md', () => {
  const page = readFileSync(path.join(import.meta.dirname, '../../../docs/dialects.md'), 'utf8');
  const rows = (/## Differences\n(.+?)\n## /s.exec(page)?.[1] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) => line.slice(1, -1).split('|'))
    .map((cells) => cells.map((cell) => cell.trim()));
  const [head = [], ...body] = rows;
  expect(head.slice(1)).toEqual(dialectName.options);
  const off = (value: number, neutral: number) => (value === neutral ? 'off' : String(value));
  const words: Readonly<Record<string, (behaviour: Habits, sampling: SamplingParameters) => string>> = {
    '`max_tokens`': ({ maxTokens }) => String(maxTokens).replace('-', '−'),
    '`temperature`': (_, { temperature }) => String(temperature),
    '`top_p` / `top_k` / `min_p`': (_, { topP, topK, minP }) => `${topP} / ${off(topK, 0)} / ${minP}`,
    'repetition penalty': (_, { repetitionPenalty, repeatLastN }) =>
      repeatLastN === -1 ? String(repetitionPenalty) : `${repetitionPenalty}, last ${repeatLastN} tokens`,
    'penalties count': (_, { penaltyScope }) =>
      penaltyScope === 'all' ? 'prompt and generated' : 'generated',
    'stop text': ({ includeStop }) => (includeStop ? 'kept' : 'removed'),
    '`prompt` + `max_tokens` too long': ({ contextOverflow }) =>
      contextOverflow === 'error' ? '400' : 'reduced',
    'maximum of `logprobs`': ({ logprobsCeiling }) => String(logprobsCeiling),
    'usage in streams': ({ usageUnasked }) => (usageUnasked ? 'last chunk of the last choice' : 'on request'),
    'error `code`': ({ codeOf400 }) => (codeOf400 === 400 ? 'HTTP status' : 'name'),
    'any model name': ({ anyModel }) => (anyModel ? 'yes' : 'no'),
    '`model` may be absent': ({ modelOptional }) => (modelOptional ? 'yes' : 'no'),
    'ranges of fields': ({ ranges }) => ranges,
    '`strict` of a schema': ({ checksStrict }) => (checksStrict ? 'checked' : 'ignored'),
  };
  const expected = Object.entries(words).map(([name, word]) => [
    name,
    ...dialectName.options.map((dialect) =>
      word(BEHAVIOURS[dialect], { ...NEUTRAL_SAMPLING, ...BEHAVIOURS[dialect].sampling }),
    ),
  ]);
  expect(body).toEqual(expected);
});
