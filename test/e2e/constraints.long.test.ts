import { describe, expect, test } from 'vitest';
import { HOSTILE_CASES } from '../support/grammar/hostile-cases.ts';
import { sharedSystem } from '../support/shared-system.ts';
import { constraintField } from '../tools/bench/target.ts';

/** Tests constraints through the whole product, combined with other request fields. */

const system = sharedSystem();

interface Answer {
  readonly choices: readonly {
    readonly text: string;
    readonly finish_reason: string;
    readonly logprobs: { readonly tokens: readonly string[] } | null;
  }[];
  readonly usage: { readonly completion_tokens: number };
}

const post = (fields: object) => system.request('/v1/completions', { model: 'default', ...fields });

const WHOLE = /^(?:ab|cd){6,20}$/;
const request = {
  prompt: 'Say: ',
  grammar: { type: 'regex', value: '(ab|cd){6,20}' },
  max_tokens: 64,
  temperature: 1,
  seed: 3,
};

async function complete(fields: object): Promise<Answer> {
  const response = await post({ ...request, ...fields });
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

describe('a JSON Schema', () => {
  const schema = {
    type: 'object',
    properties: { n: { type: 'integer', javaType: 'int' } },
    required: ['n'],
    kind: 1,
  };
  const headerOf = async (fields: object) => {
    const response = await post({ prompt: 'n', max_tokens: 8, json_schema: schema, ...fields });
    expect(response.status).toBe(200);
    await response.text();
    return response.headers.get('x-ignored-keywords');
  };

  test('with keywords that no specification knows names them in a header, streamed or not', async () => {
    expect(await headerOf({})).toBe('kind, javaType');
    expect(await headerOf({ stream: true })).toBe('kind, javaType');
    expect(await headerOf({ json_schema: { type: 'integer' } })).toBeNull();
  });

  test.each([
    ['as an object', (schema: string) => `"json_schema":${schema}`],
    ['as text', (schema: string) => `"json_schema":${JSON.stringify(schema)}`],
    [
      'in response_format',
      (schema: string) =>
        `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":${schema}}}`,
    ],
    ['in structured_outputs', (schema: string) => `"structured_outputs":{"json":${schema}}`],
    [
      'in Lark',
      (schema: string) => `"grammar":{"type":"lark","value":${JSON.stringify(`start: %json ${schema}`)}}`,
    ],
    [
      'of a function',
      (schema: string) =>
        `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":${schema}}}],` +
        '"tool_choice":{"type":"function","function":{"name":"f"}}',
    ],
  ])('%s keeps all digits of its numbers', async (_, field) => {
    const number = field('{"minimum":9007199254740993,"maximum":9007199254740993}');
    const body = `{"model":"default","prompt":"n","max_tokens":32,${number}}`;
    const response = await system.request('/v1/completions', body);
    expect(response.status).toBe(200);
    expect(((await response.json()) as Answer).choices[0]!.text.trim()).toBe('9007199254740993');
  });

  test('lets other properties in if open_objects is true', async () => {
    const open = {
      type: 'object',
      properties: { a: { const: 1 } },
      required: ['a'],
      minProperties: 2,
      maxProperties: 2,
    };
    expect((await post({ prompt: 'n', max_tokens: 8, json_schema: open })).status).toBe(400);
    expect(await headerOf({ json_schema: open, open_objects: true })).toBeNull();
  });
});

describe('a constraint works together with', () => {
  test.each([
    ['nothing else', {}, 1],
    ['n', { n: 3 }, 3],
    ['best_of', { n: 2, best_of: 4 }, 2],
    ['several prompts', { prompt: ['a', 'b'] }, 2],
    ['min_tokens', { min_tokens: 6 }, 1],
    ['penalties and truncation', { frequency_penalty: 1.5, top_p: 0.2, top_k: 2 }, 1],
    ['a bias against what it allows', { logit_bias: { 97: -100, 98: -100 } }, 1],
  ])('%s', async (_, fields, choices) => {
    const answer = await complete(fields);
    expect(answer.choices).toHaveLength(choices);
    for (const { text, finish_reason } of answer.choices) {
      expect(text).toMatch(WHOLE);
      expect(finish_reason).toBe('stop');
    }
    expect(answer.usage.completion_tokens).toBeGreaterThanOrEqual('min_tokens' in fields ? 6 : 1);
  });

  test('ignore_eos: the text continues until nothing more is allowed', async () => {
    const { choices } = await complete({ ignore_eos: true });
    expect(choices[0]?.text).toMatch(/^(?:ab|cd){20}$/);
    expect(choices[0]?.finish_reason).toBe('stop');
  });

  test('max_tokens, which may truncate the text', async () => {
    const { choices } = await complete({ max_tokens: 3 });
    expect(choices[0]?.finish_reason).toBe('length');
    expect(choices[0]?.text).toMatch(/^(?:ab|cd)*[ac]?$/);
  });

  test('a stop string, which ends the text earlier', async () => {
    const { choices } = await complete({ stop: ['b'] });
    expect(choices[0]?.text).toMatch(/^(?:cd){0,20}a?$/);
    expect(choices[0]?.finish_reason).toBe('stop');
  });

  test('echo and logprobs', async () => {
    const { choices } = await complete({ echo: true, logprobs: 2 });
    expect(choices[0]?.text.startsWith(request.prompt)).toBe(true);
    expect(choices[0]?.text.slice(request.prompt.length)).toMatch(WHOLE);
    expect(choices[0]?.logprobs?.tokens.join('')).toContain(choices[0]?.text);
  });

  test('streaming, and gives the same text as without it', async () => {
    const body = await (await post({ ...request, stream: true })).text();
    const texts = [...body.matchAll(/^data: (\{.*\})$/gm)].map(
      ([, chunk]) => (JSON.parse(chunk as string) as Answer).choices[0]?.text ?? '',
    );
    expect(texts.join('')).toBe((await complete({})).choices[0]?.text);
  });
});

describe('hostile constraints', () => {
  /** One case in this many is sent; TEST_HOSTILE=1 sends all. */
  const every = Number(process.env.TEST_HOSTILE ?? 12);
  const sent = HOSTILE_CASES.filter((_, index) => index % every === 0);

  interface Refusal {
    readonly error?: { readonly message: string; readonly type: string };
  }

  /** The error of a stream: its status, or its last event if it began during compilation. */
  async function refusalOf(answer: Response): Promise<Refusal['error']> {
    const text = await answer.text();
    if (answer.status !== 200) return (JSON.parse(text) as Refusal).error;
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    const [, last = '{}'] = [...text.matchAll(/^data: (\{.*\})$/gm)].at(-1) ?? [];
    return (JSON.parse(last) as Refusal).error;
  }

  // Streamed, because a plain answer that has begun can only be broken off.
  test('get a text or a clear refusal while other requests are served', async () => {
    for (const { name, wire } of sent) {
      const hostile = post({ prompt: 'x', max_tokens: 16, stream: true, ...constraintField(wire()) });
      const usual = complete({});
      const answer = await hostile;
      expect([200, 400], name).toContain(answer.status);
      const refusal = await refusalOf(answer);
      if (refusal !== undefined) {
        expect(refusal, name).toMatchObject({ type: 'invalid_request_error' });
        expect(refusal.message, name).toMatch(/\w{3}/);
      }
      expect((await usual).choices[0]?.text).toMatch(WHOLE);
    }
  });
});
