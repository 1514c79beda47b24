import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { completion, tenantWithKey } from '../admin/admin-client.ts';
import { assemble, type Chunk, payloadsOf } from '../support/sse.ts';
import { KEY } from '../support/worker.ts';
import { answer, sse } from './fake-openai.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker } = upstreamsForTests();

const foreign = (fields: Record<string, unknown> = {}) =>
  completion(worker, KEY, { model: 'foreign', ...fields });

interface StreamedError {
  readonly message: string;
  readonly code: string;
  readonly param: string | null;
}

/** Sends a streamed request and adds up its answer. An error is the answer's, or the stream's last event. */
async function streamed(fields: Record<string, unknown> = {}) {
  const response = await worker.post({
    model: 'foreign',
    prompt: 'Hi',
    max_tokens: 4,
    stream: true,
    stream_options: { include_usage: true },
    ...fields,
  });
  const text = await response.text();
  const payloads = response.status === 200 ? payloadsOf(text) : [JSON.parse(text)];
  const { error = null } = payloads.at(-1) as { error?: StreamedError | null };
  const chunks = payloads.filter((payload): payload is Chunk => Object.hasOwn(payload as object, 'choices'));
  return { error, choices: assemble(chunks), usage: chunks.at(-1)?.usage };
}

describe('an OpenAI-compatible server', () => {
  test('gets a plain request with its own field names and key, and with unknown fields', async () => {
    const fields = { some_future_field: 7, hidden: { a: 1 }, top_k: 5, seed: 3, stop: ['x'] };
    const { status, body, headers } = await foreign(fields);
    // What the server does not get is ignored.
    expect(headers.get('x-ignored-fields')).toBe('hidden');
    expect([status, body.choices[0]?.text, body.choices[0]?.finish_reason]).toEqual([
      200,
      'Hello there',
      'length',
    ]);
    expect(body.usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 2 });
    expect(openAi.headers[0]?.authorization).toBe('Bearer secret-of-the-foreign-server');
    expect(openAi.bodies[0]).toMatchObject({
      model: 'real-name',
      prompt: 'Hi',
      max_tokens: 4,
      stream: false,
      some_future_field: 7,
      top_k: 5,
      seed: 3,
      stop: ['x'],
    });
    for (const name of ['min_p', 'stream_options']) expect(openAi.bodies[0]).not.toHaveProperty(name);
    expect(openAi.headers[0]?.accept).toBe('application/json');
  });

  test('gets a streamed request for a stream, with usage', async () => {
    const { choices, usage } = await streamed();
    expect(choices).toMatchObject([{ text: 'Hello there', finish_reason: 'length' }]);
    expect(usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 2 });
    const options = { stream: true, stream_options: { include_usage: true } };
    expect(openAi.bodies[0]).toMatchObject(options);
    expect(openAi.headers[0]?.accept).toBe('text/event-stream');
  });

  const plainly = (body: unknown) => {
    openAi.script = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
  };

  test('gives plain answers with several choices, their logprobs and no usage', async () => {
    const choice = (index: number, text: string) => ({
      index,
      text,
      finish_reason: index === 0 ? 'stop' : null,
      logprobs: { tokens: [text], token_logprobs: [-index], top_logprobs: [{ [text]: -index }] },
    });
    plainly({ id: 'x', object: 'text_completion', choices: [choice(1, 'b'), choice(0, 'a')] });
    const { status, body } = await foreign({ n: 2, logprobs: 1 });
    expect(status).toBe(200);
    expect(body.choices).toMatchObject([
      { text: 'a', finish_reason: 'stop', logprobs: { token_logprobs: [0] } },
      { text: 'b', finish_reason: 'stop', logprobs: { token_logprobs: [-1] } },
    ]);
    expect(body.usage).toMatchObject({ prompt_tokens: 1, completion_tokens: 2 });
  });

  test.each([
    ['is not JSON', 'text'],
    ['has no choice', { choices: [] }],
    ['has an error', { error: { message: 'out of memory' } }],
  ])('whose plain answer %s fails with 502', async (_, body) => {
    plainly(body);
    const answered = await foreign();
    expect([answered.status, answered.body.error.code]).toEqual([502, 'upstream_error']);
    expect(JSON.stringify(answered.body)).not.toContain('memory');
  });

  test.each([
    ['until the end of the context', { max_tokens: -1, 'x-dialect': 'llamacpp' }, 2048 - 25],
    [
      'without max_tokens in the dialect llamacpp',
      { max_tokens: undefined, 'x-dialect': 'llamacpp' },
      2048 - 25,
    ],
    [
      'beyond the context, truncated',
      { max_tokens: 2040, context_length_exceeded_behavior: 'truncate' },
      2048 - 25,
    ],
    [
      'beyond the context, not truncated',
      { max_tokens: 2040, context_length_exceeded_behavior: 'error' },
      2040,
    ],
  ])('is asked for tokens %s by the configured context length', async (_, fields, wanted) => {
    const { 'x-dialect': dialect = 'openai', ...body } = fields as Record<string, unknown>;
    const headers = { 'x-dialect': String(dialect) };
    const answer = await worker.post({ model: 'foreign', prompt: 'word '.repeat(20), ...body }, { headers });
    expect([answer.status, openAi.bodies[0]?.max_tokens]).toEqual([200, wanted]);
  });

  const ids = (count: number) => Array.from({ length: count }, (_, index) => index);
  const asError = { context_length_exceeded_behavior: 'error' };
  test.each([
    ['ids and max_tokens exceed the context', { prompt: ids(2_000), max_tokens: 49, ...asError }, 'prompt'],
    ['ids leave no room', { prompt: ids(2_048) }, 'prompt'],
    ['one of several lists is too long', { prompt: [[1], ids(2_049)], max_tokens: 0 }, 'prompt[1]'],
  ])('gets no request whose %s, because ids are counted exactly', async (_, fields, param) => {
    const { status, body } = await foreign(fields);
    expect([status, body.error.code, body.error.param]).toEqual([400, 'context_length_exceeded', param]);
    expect(body.error.message).toContain('maximum context length is 2048 tokens');
    expect(openAi.bodies).toEqual([]);
  });

  test.each([
    ['ids that fit', { prompt: ids(2_000), max_tokens: 48, ...asError }, 48],
    ['ids with less room than asked', { prompt: ids(2_000), max_tokens: 100 }, 48],
    ['ids that the server cuts', { prompt: ids(3_000), truncate_prompt_tokens: 8, ...asError }, 4],
    ['a text of an estimated length', { prompt: 'word '.repeat(3_000), max_tokens: 9, ...asError }, 9],
  ])('gets %s', async (_, fields, wanted) => {
    expect([(await foreign(fields)).status, openAi.bodies[0]?.max_tokens]).toEqual([200, wanted]);
  });

  test('is quoted with the public name in place of its own, but not inside of words', async () => {
    const message = "real-name: the surreal-name and 'real-name-2', real-names; real-name.";
    openAi.script = (_, response) => response.writeHead(400).end(JSON.stringify({ error: { message } }));
    const said = (await foreign()).body.error.message;
    expect(said).toBe("foreign: the surreal-name and 'real-name-2', real-names; foreign.");
  });

  test('reports cached tokens only if the server does', async () => {
    expect((await foreign()).body.usage.prompt_tokens_details).toEqual({ cached_tokens: 3 });
    plainly({ choices: [{ index: 0, text: 'a' }], usage: { prompt_tokens: 2, completion_tokens: 1 } });
    expect((await foreign()).body.usage).toEqual({ prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 });
  });

  test.each([
    ['foreign', {}],
    ['foreign', { stream: true }],
  ])('gets all digits of a seed', async (model, fields) => {
    openAi.script = (body, response) => answer(body, response);
    await worker.post(
      `{"model":"${model}","prompt":"a","seed":9007199254740993,"stream":${'stream' in fields}}`,
    );
    expect(openAi.texts[0]).toContain('"seed":9007199254740993');
  });

  test.each([
    ['foreign', 'me'],
    ['strict', undefined],
    ['hashing', expect.stringMatching(/^[0-9a-f]{64}$/)],
  ])('gets the field user as the upstream of %s is configured', async (model, user) => {
    await completion(worker, KEY, { model, user: 'me' });
    expect(openAi.bodies[0]?.user).toEqual(user);
  });

  test('of the flavor openai gets the standard fields only', async () => {
    await completion(worker, KEY, { model: 'strict', best_of: 1, odd: 1, top_k: -1, cache_prompt: false });
    const standard = ['model', 'prompt', 'max_tokens', 'n', 'stream', 'temperature', 'top_p'];
    const penalties = ['presence_penalty', 'frequency_penalty'];
    expect(Object.keys(openAi.bodies[0] ?? {}).toSorted()).toEqual([...standard, ...penalties].toSorted());
  });

  test.each([
    ['top_k', { top_k: 5 }, 'top_k'],
    ['min_tokens', { min_tokens: 1 }, 'min_tokens'],
    ['guided_regex', { guided_regex: 'a+' }, 'guided_regex'],
    ['structured_outputs.regex', { structured_outputs: { regex: 'a' } }, 'structured_outputs.regex'],
  ])('of the flavor openai is not asked for %s, which it would ignore', async (_, fields, param) => {
    const { status, body } = await completion(worker, KEY, { model: 'strict', ...fields });
    expect([status, body.error.code, body.error.param]).toEqual([400, 'unsupported_parameter', param]);
    expect(openAi.bodies).toEqual([]);
  });

  test('of the flavor llamacpp gets a schema as its field json_schema, and no dialect of vLLM', async () => {
    const model = { model: 'local' };
    await completion(worker, KEY, { ...model, response_format: { type: 'json_object' } });
    await completion(worker, KEY, { ...model, guided_json: { type: 'integer' }, repetition_penalty: 1.5 });
    expect(openAi.bodies[0]).toMatchObject({ json_schema: { type: 'object' } });
    expect(openAi.bodies[1]).toMatchObject({ json_schema: { type: 'integer' }, repeat_penalty: 1.5 });
    for (const body of openAi.bodies)
      expect(Object.keys(body).join()).not.toMatch(/structured|guided|repetition/);
    const refused = await completion(worker, KEY, { ...model, guided_regex: 'a+' });
    expect([refused.status, refused.body.error.param]).toEqual([400, 'guided_regex']);
  });

  test('gets fields as clients sent them, also if their value is neutral for the origin', async () => {
    const sent = { top_k: 0, min_p: 0, repetition_penalty: 1, cache_prompt: false };
    await foreign({ ...sent, min_keep: null });
    expect(openAi.bodies[0]).toMatchObject(sent);
    expect(openAi.bodies[0]).not.toHaveProperty('min_keep');
  });

  const grammar = 'root ::= "a"';
  const schema = { type: 'integer' };
  const asked = { type: 'json_schema', json_schema: { name: 'output', schema } };

  test.each([
    [{ grammar }, { grammar, structured_outputs: { grammar } }],
    [{ structured_outputs: { grammar } }, { grammar, structured_outputs: { grammar } }],
    [{ json_schema: schema }, { json_schema: schema, response_format: asked }],
    [{ response_format: { type: 'json_object', schema } }, { response_format: asked }],
    [{ guided_regex: 'a+' }, { guided_regex: 'a+', structured_outputs: { regex: 'a+' } }],
  ])('gets a constraint under the client’s name and under the common names: %j', async (sent, told) => {
    await foreign(sent);
    const { json_schema, response_format, structured_outputs, grammar, guided_regex } =
      openAi.bodies[0] ?? {};
    const constraints = { json_schema, response_format, structured_outputs, grammar, guided_regex };
    expect(constraints).toEqual(told);
  });

  test('gets a cache salt per tenant and per salt of the client', async () => {
    const { key } = await tenantWithKey(worker, 'salted');
    for (const [caller, salt] of [
      [KEY, undefined],
      [KEY, undefined],
      [KEY, 'mine'],
      [key, undefined],
      [key, 'mine'],
    ] as const) {
      await completion(worker, caller, { model: 'foreign', cache_salt: salt });
    }
    const [first, again, ...others] = openAi.bodies.map(({ cache_salt }) => cache_salt);
    expect(again).toBe(first);
    expect(new Set([first, ...others]).size).toBe(4);
    for (const salt of [first, ...others]) expect(salt).toMatch(/^[0-9a-f]{64}$/);
  });

  test('gets no salt unless the configuration or the client asks for one, because hosted APIs reject unknown fields', async () => {
    await completion(worker, KEY, { model: 'hashing' });
    await completion(worker, KEY, { model: 'hashing', cache_salt: 'mine' });
    expect(openAi.bodies[0]).not.toHaveProperty('cache_salt');
    expect(openAi.bodies[1]).toMatchObject({ cache_salt: expect.stringMatching(/^[0-9a-f]{64}$/) });
  });

  test('keeps token names in logprobs, partial characters included', async () => {
    openAi.script = (_, response) => {
      const logprobs = {
        tokens: ['bytes:\\xe2\\x82', 'bytes:\\xac'],
        token_logprobs: [-0.5, -0.25],
        top_logprobs: [{ 'bytes:\\xe2\\x82': -0.5, a: -1.5 }, null],
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sse({ choices: [{ index: 0, text: '€', logprobs, finish_reason: 'stop' }] }));
      response.end('data: [DONE]\n\n');
    };
    const { choices } = await streamed({ logprobs: 1 });
    expect(choices[0]?.logprobs).toMatchObject({
      tokens: ['bytes:\\xe2\\x82', 'bytes:\\xac'],
      token_logprobs: [-0.5, -0.25],
    });
    expect(choices[0]?.logprobs?.top_logprobs[0]).toEqual({ 'bytes:\\xe2\\x82': -0.5 });
  });

  test('may send logprobs in the layout of chat completions, as llama.cpp does', async () => {
    const token = (text: string, bytes: number[], logprob: number) => ({
      id: 1,
      token: text,
      bytes,
      logprob,
    });
    openAi.script = (_, response) => {
      const content = [
        {
          ...token('', [0xe2, 0x82], -0.5),
          top_logprobs: [token('a', [97], -1.5), token('', [0xe2, 0x82], -0.5)],
        },
        { ...token('', [0xac], -0.25), top_logprobs: [] },
      ];
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        sse({ choices: [{ index: 0, text: '€', logprobs: { content }, finish_reason: 'stop' }] }),
      );
      response.end('data: [DONE]\n\n');
    };
    const { choices } = await streamed({ logprobs: 2 });
    expect(choices[0]?.logprobs).toEqual({
      tokens: ['bytes:\\xe2\\x82', 'bytes:\\xac'],
      token_logprobs: [-0.5, -0.25],
      top_logprobs: [{ 'bytes:\\xe2\\x82': -0.5, a: -1.5 }, { 'bytes:\\xac': -0.25 }],
      text_offset: [0, 0],
    });
  });

  test.each([
    ['has no numbers', {}, [1, 2]],
    ['has nulls for numbers', { prompt_tokens: 9, completion_tokens: null }, [9, 2]],
  ])('whose usage %s is counted by the Worker', async (_, usage, [prompt, completed]) => {
    openAi.script = (_body, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sse({ choices: [{ index: 0, text: 'a', logprobs: {} }] }));
      response.write(sse({ choices: [{ index: 0, text: 'b', finish_reason: 'stop' }] }));
      response.end(`${sse({ choices: null, usage })}data: [DONE]\n\n`);
    };
    expect((await streamed()).usage).toMatchObject({ prompt_tokens: prompt, completion_tokens: completed });
  });

  test.each([
    ['token ids as names', { logprobs: 1, return_tokens_as_token_ids: true }, 'return_tokens_as_token_ids'],
    ['the rest of a prompt that it cuts', { echo: true, truncate_prompt_tokens: 1 }, 'echo'],
    ['the rest of a prompt that it may cut', { echo: true, truncate_sequence: true }, 'echo'],
    ['special tokens that it adds by itself', { add_special_tokens: 'always' }, 'add_special_tokens'],
  ])('does not get requests for %s, which the Worker would have to guess', async (_, fields, param) => {
    const { status, body } = await foreign(fields);
    expect([status, body.error.code, body.error.param]).toEqual([400, 'unsupported_parameter', param]);
    expect(openAi.bodies).toHaveLength(0);
  });

  test.each([
    ['a text in the envelope', 400, { error: 'prompt is too long' }, 'prompt is too long'],
    [
      'no envelope',
      400,
      { object: 'error', message: 'n is too big', code: 400, param: null },
      'n is too big',
    ],
    ['odd members', 422, { error: { message: 'bad n', param: ['n'], code: { a: 1 } } }, 'bad n'],
    ['a list of fields', 422, { detail: [{ loc: ['body', 'n'], msg: 'too big' }] }, 'n: too big'],
    ['nothing that can be read', 422, { detail: [{ msg: 'x' }] }, 'The model server rejected the request.'],
  ])('that rejects a request with %s does not count as failing', async (_, theirs, said, message) => {
    openAi.script = (_body, response) => response.writeHead(theirs).end(JSON.stringify(said));
    // More failures than the circuit breaker allows.
    for (let count = 0; count < 8; count += 1) {
      const { status, body } = await foreign();
      expect([status, body.error.code, body.error.message]).toEqual([400, 'invalid_value', message]);
    }
  });

  test.each([
    ['no envelope', { object: 'error', message: 'no 10.0.0.9', type: 'InternalServerError', code: 500 }],
    ['a text in the envelope', { error: 'no 10.0.0.9' }],
  ])('that fails mid-stream with %s gives an error event without its message', async (_, fault) => {
    openAi.script = (_body, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${sse({ choices: [{ index: 0, text: 'He' }] })}${sse(fault)}data: [DONE]\n\n`);
    };
    const { error } = await streamed();
    const message = 'The model server reported an error.';
    expect([error?.code, error?.message]).toEqual(['upstream_error', message]);
  });

  test('that rejects a request with a code of its own has it shown, and its name of the model is not', async () => {
    const said = { message: "real-name: unsupported 'n'", param: 'n', code: 'n_not_supported' };
    openAi.script = (_body, response) => response.writeHead(400).end(JSON.stringify({ error: said }));
    const { status, body } = await foreign();
    expect([status, body.error]).toEqual([
      400,
      {
        message: "foreign: unsupported 'n'",
        type: 'invalid_request_error',
        param: 'n',
        code: 'n_not_supported',
      },
    ]);
  });

  test('that names the field of a faulty constraint has its reason shown once, with the field of the client', async () => {
    const message = "Invalid 'structured_outputs.regex': the group is not closed";
    const error = { message, param: 'structured_outputs.regex', code: 'invalid_grammar' };
    openAi.script = (_, response) => response.writeHead(400).end(JSON.stringify({ error }));
    expect((await foreign({ guided_regex: '(' })).body.error).toMatchObject({
      message: "Invalid 'guided_regex': the group is not closed",
      param: 'guided_regex',
      code: 'invalid_grammar',
    });
  });

  test.each([
    ['the path', 'Not Found', 415],
    ['the model', "The model 'real-name' does not exist.", 404],
  ])('that does not know %s gives a clear status', async (_, message, status) => {
    openAi.script = (_body, response) =>
      response.writeHead(404).end(JSON.stringify({ error: { message, type: 'NotFoundError', code: 404 } }));
    expect((await foreign()).status).toBe(status);
  });

  test.each([
    { type: 'BadRequestError', code: 400 },
    { type: 'invalid_request_error', code: 'invalid_value' },
  ])('that rejects the request mid-stream does not count as failing: %j', async (fault) => {
    openAi.script = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${sse({ error: { message: 'Every token is forbidden.', ...fault } })}data: [DONE]\n\n`);
    };
    // More failures than the circuit breaker allows.
    for (let count = 0; count < 8; count += 1) {
      const { error } = await streamed();
      expect([error?.code, error?.message]).toEqual(['invalid_value', 'Every token is forbidden.']);
    }
    expect(openAi.bodies).toHaveLength(8);
  });

  const tooLong = [
    ['vLLM', { message: "This model's maximum context length is 2048 tokens. However, …", code: 400 }],
    [
      'llama.cpp',
      { message: 'the request exceeds the context', type: 'exceed_context_size_error', code: 400 },
    ],
    ['OpenAI', { message: 'Too long.', type: 'invalid_request_error', code: 'context_length_exceeded' }],
  ] as const;

  test.each(tooLong)(
    'that rejects a long prompt in the words of %s gives context_length_exceeded',
    async (_, error) => {
      openAi.script = (_body, response) => response.writeHead(400).end(JSON.stringify({ error }));
      const refused = await foreign();
      openAi.script = (_body, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end(`${sse({ error })}data: [DONE]\n\n`);
      };
      expect(refused.status).toBe(400);
      for (const said of [refused.body.error, (await streamed()).error]) {
        expect([said?.code, said?.param]).toEqual(['context_length_exceeded', 'prompt']);
        expect(said?.message).toBe(error.message);
      }
    },
  );

  test('without raw completions gives 415 with a message that says what to do', async () => {
    const configured = await completion(worker, KEY, { model: 'chat-only' });
    expect([configured.status, configured.body.error.code]).toEqual([415, 'unsupported_endpoint']);
    expect(configured.body.error.message).toMatch(/vLLM, Ollama, LM Studio/);
    expect(openAi.bodies).toHaveLength(0);
    openAi.script = (_, response) => response.writeHead(404).end('<html>');
    expect((await foreign()).status).toBe(415);
  });

  test.each([
    [400, { error: { message: 'bad n', param: 'n', code: 400 } }, 400, 'invalid_value'],
    [401, { error: { message: 'bad key' } }, 502, 'upstream_error'],
    [429, {}, 503, 'server_is_overloaded'],
    [500, 'boom', 502, 'upstream_error'],
  ])('has its %d mapped to an error that the client can act on', async (theirs, body, status, code) => {
    openAi.script = (_, response) => response.writeHead(theirs).end(JSON.stringify(body));
    const answered = await foreign();
    expect([answered.status, answered.body.error.code]).toEqual([status, code]);
    expect(JSON.stringify(answered.body)).not.toMatch(/bad key|boom/);
  });

  test.each([
    ['a fraction of a second', 429, '0.2', {}, ['server_is_overloaded', '1']],
    ['seconds', 503, '7', {}, ['server_is_overloaded', '7']],
    [
      'a date',
      429,
      () => new Date(Date.now() + 60_000).toUTCString(),
      {},
      ['server_is_overloaded', /^(5\d|60)$/],
    ],
    ['nonsense', 429, 'soon', {}, ['server_is_overloaded', '1']],
    ['that it is loading', 503, '9', { error: { message: 'Loading model' } }, ['model_loading', '9']],
  ] as const)('that says %s is waited for in whole seconds', async (_, theirs, says, said, [code, wait]) => {
    openAi.script = (_body, response) => {
      const header = typeof says === 'string' ? says : says();
      response.writeHead(theirs, { 'retry-after': header }).end(JSON.stringify(said));
    };
    const { status, body, headers } = await foreign();
    expect([status, body.error.code]).toEqual([503, code]);
    expect(headers.get('retry-after')).toMatch(wait);
  });

  test.each([
    ['an error event', sse({ error: { message: 'out of memory' } })],
    ['an end without [DONE]', ''],
    ['[DONE] before the choice has finished', 'data: [DONE]\n\n'],
    ['a choice that it has given up', sse({ choices: [{ index: 0, text: '', finish_reason: 'abort' }] })],
    ['something that is no chunk', 'data: {"choices": 3}\n\n'],
  ])('ends with an error event after %s in its stream', async (_, tail) => {
    openAi.script = (_body, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sse({ choices: [{ index: 0, text: 'Hello' }] }));
      setTimeout(() => response.end(tail), 50);
    };
    expect((await streamed()).error?.code).toBe('upstream_error');
  });

  test.each([302, 307])('that redirects with %d is not followed', async (redirect) => {
    openAi.script = (_, response) =>
      openAi.bodies.length > 1
        ? answer({}, response)
        : response.writeHead(redirect, { location: `${openAi.url}/elsewhere` }).end();
    const { status, body } = await foreign();
    expect([status, body.error?.code]).toEqual([502, 'upstream_error']);
    expect(openAi.bodies).toHaveLength(1);
  });

  /** Writes until the connection closes, and counts the bytes. */
  const endless = (response: ServerResponse, piece: string) => {
    const sent = { bytes: 0 };
    const more = (): void => {
      while (!response.closed) {
        sent.bytes += piece.length;
        if (!response.write(piece)) break;
      }
      if (!response.closed) response.once('drain', more);
    };
    more();
    return sent;
  };
  const MAX_LENGTH = 16 * 2 ** 20;

  test('with an endless event is cancelled before it fills the memory', async () => {
    let sent = { bytes: 0 };
    openAi.script = (_body, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sse({ choices: [{ index: 0, text: 'Hello' }] }));
      sent = endless(response, 'data: '.padEnd(65_536, 'x'));
    };
    expect((await streamed()).error?.code).toBe('upstream_error');
    expect(sent.bytes).toBeGreaterThan(MAX_LENGTH);
  });

  test('with an endless error body is cancelled before it fills the memory', async () => {
    let sent = { bytes: 0 };
    openAi.script = (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      sent = endless(response, '{"error":['.padEnd(65_536, ' '));
    };
    const { status, body } = await foreign();
    expect([status, body.error.code]).toEqual([400, 'invalid_value']);
    expect(sent.bytes).toBeGreaterThan(MAX_LENGTH);
    expect(sent.bytes).toBeLessThan(4 * MAX_LENGTH);
  });

  test('may start its stream with a byte order mark', async () => {
    openAi.script = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`\ufeff${sse({ choices: [{ index: 0, text: 'Hello' }] })}`);
      response.end(sse({ choices: [{ index: 0, text: '', finish_reason: 'stop' }] }));
    };
    expect((await streamed()).choices[0]?.text).toBe('Hello');
  });
});
