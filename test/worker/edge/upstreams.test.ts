import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type FakeOrigin, MODEL, SECRET, startFakeOrigin } from '../support/fake-origin.ts';
import { KEY, type RunningWorker, startWorker } from '../support/worker.ts';
import { completion } from './admin-client.ts';
import { eventually } from './eventually.ts';
import { answer, type FakeOpenAi, sse, startFakeOpenAi } from './fake-openai.ts';

let origins: [FakeOrigin, FakeOrigin];
let openAi: FakeOpenAi;
let worker: RunningWorker;

beforeAll(async () => {
  origins = [await startFakeOrigin(), await startFakeOrigin()];
  openAi = await startFakeOpenAi();
  const model = { contextLength: 2048 };
  const upstreams = [
    { kind: 'origin', name: 'first', url: origins[0].url, timeouts: { connectMs: 500 } },
    { kind: 'origin', name: 'second', url: origins[1].url, timeouts: { connectMs: 500, idleMs: 400 } },
    {
      kind: 'origin',
      name: 'named',
      url: origins[0].url,
      models: [{ id: 'writer', upstreamId: 'org/tiny' }, { id: 'coder', upstreamId: 'fim' }, { id: 'gone' }],
    },
    {
      kind: 'openai',
      name: 'foreign',
      url: openAi.url,
      apiKey: 'FOREIGN_KEY',
      models: [
        { ...model, id: 'foreign', upstreamId: 'real-name' },
        { ...model, id: 'chat-only', rawCompletions: false },
      ],
      timeouts: { firstEventMs: 400 },
    },
  ];
  worker = await startWorker(origins[0], {
    UPSTREAMS: JSON.stringify(upstreams),
    FOREIGN_KEY: 'secret-of-the-foreign-server',
    ORIGIN_SECRET: SECRET,
  });
});
beforeEach(() => {
  for (const origin of origins) origin.reset();
  openAi.script = answer;
  openAi.bodies.length = 0;
  openAi.headers.length = 0;
});
afterAll(async () => {
  await worker?.stop();
  for (const origin of origins ?? []) await origin.stop();
  await openAi?.stop();
});

const foreign = (fields: Record<string, unknown> = {}) =>
  completion(worker, KEY, { model: 'foreign', ...fields });

/** A prompt that goes to this origin as long as both are well. */
async function promptFor(origin: FakeOrigin): Promise<string> {
  for (let count = 0; ; count += 1) {
    const before = origin.requests.length;
    await completion(worker, KEY, { prompt: `for ${count}` });
    if (origin.requests.length > before) return `for ${count}`;
  }
}

const oneAfterTheOther = async (count: number, prompt: string): Promise<void> => {
  for (let index = 0; index < count; index += 1) {
    expect((await completion(worker, KEY, { prompt })).status).toBe(200);
  }
};

describe('several origins', () => {
  test('one that fails five times in a row is left alone for a while; then a single probe decides', async () => {
    const [broken] = origins;
    const prompt = await promptFor(broken);
    broken.reset();
    broken.script = (_, wire) => wire.refuse(500, {});
    await oneAfterTheOther(8, prompt);
    expect(broken.requests).toHaveLength(5);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    const probed = Promise.withResolvers<void>();
    broken.reset();
    const usual = broken.script;
    broken.script = async (request, wire) => {
      await probed.promise;
      return usual(request, wire);
    };
    const first = completion(worker, KEY, { prompt });
    await eventually(
      async () => broken.requests.length,
      (count) => count === 1,
    );
    await oneAfterTheOther(3, prompt);
    expect(broken.requests).toHaveLength(1);
    probed.resolve();
    expect((await first).status).toBe(200);
    await oneAfterTheOther(2, prompt);
    expect(broken.requests).toHaveLength(3);
  });

  test('one that does not answer in its own time is given up for the other one', async () => {
    const prompt = await promptFor(origins[0]);
    origins[0].script = (_, wire) => wire.closed;
    const { status, headers } = await completion(worker, KEY, { prompt });
    expect(status).toBe(200);
    const total = Number(/total;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1]);
    expect(total).toBeGreaterThanOrEqual(500);
  });

  test('one that falls silent longer than its own limit allows ends with 504', async () => {
    const prompt = await promptFor(origins[1]);
    origins[1].script = async (request, wire) => {
      wire.send({ type: 'accepted', model: request.model, promptTokens: [2] });
      wire.send({ type: 'token', choice: 0, text: 'x', completionTokens: 1 });
      await wire.closed;
    };
    const { status, body } = await completion(worker, KEY, { prompt });
    expect([status, body.error.code]).toEqual([504, 'upstream_timeout']);
  });

  test('equal prompts go to the same one, different prompts to both', async () => {
    for (let count = 0; count < 4; count += 1) await completion(worker, KEY, { prompt: 'same' });
    expect(origins.map(({ requests }) => requests.length).toSorted()).toEqual([0, 4]);
    for (let count = 0; count < 12; count += 1) await completion(worker, KEY, { prompt: `other ${count}` });
    expect(origins.every(({ requests }) => requests.length > 0)).toBe(true);
  });

  test.each([
    ['an error status', 'status'],
    ['a cut connection', 'cut'],
    ['an error as first event', 'event'],
  ])('%s is retried once on the other one', async (_, how) => {
    let asked = 0;
    for (const origin of origins) {
      const usual = origin.script;
      origin.script = (request, wire) => {
        asked += 1;
        if (asked > 1) return usual(request, wire);
        if (how === 'status') wire.refuse(500, {});
        else if (how === 'cut') wire.die();
        else {
          wire.send({ type: 'error', code: 'upstream_error', message: 'x', param: null, retryable: true });
          wire.end();
        }
      };
    }
    const { status, body } = await completion(worker, KEY, { prompt: 'retry me' });
    expect([status, body.usage.completion_tokens, asked]).toEqual([200, 4, 2]);
  });

  const refusing =
    (code: string, headers: Record<string, string>): FakeOrigin['script'] =>
    (_, wire) =>
      wire.refuse(503, { error: { message: 'x', type: 'server_error', param: null, code } }, headers);

  test('a model that one has to load is asked for at the other first', async () => {
    for (const origin of origins) origin.models = [{ ...MODEL, state: 'loaded' }];
    for (let count = 0; count < 8; count += 1) {
      origins[0].script = refusing('model_loading', { 'retry-after': '9' });
      expect((await completion(worker, KEY, { prompt: `loading ${count}` })).status).toBe(200);
    }
    expect(origins[1].requests).toHaveLength(8);
    expect(origins[0].requests.length).toBeGreaterThan(0);
  });

  test.each([
    ['both load it: the shorter wait', ['model_loading', '9'], ['model_loading', '4'], 'model_loading', '4'],
    [
      'one loads it, one is broken: the wait',
      ['model_loading', '9'],
      ['upstream_error', '1'],
      'model_loading',
      '9',
    ],
    ['one cannot load it: the wait', ['model_unavailable', ''], ['model_loading', '3'], 'model_loading', '3'],
  ])('where %s is passed on', async (_, first, second, code, wait) => {
    const faults = [first, second];
    for (const [index, origin] of origins.entries()) {
      const [fault, seconds] = faults[index] as [string, string];
      origin.script =
        fault === 'upstream_error'
          ? (_request, wire) => wire.die()
          : refusing(fault, seconds === '' ? { 'x-should-retry': 'false' } : { 'retry-after': seconds });
    }
    const answered = await completion(worker, KEY);
    expect([answered.status, answered.body.error.code]).toEqual([503, code]);
    expect(answered.headers.get('retry-after')).toBe(wait);
    expect(answered.headers.get('x-should-retry')).toBe('true');
  });

  test('a model that nobody can load says so, and that trying again is of no use', async () => {
    for (const origin of origins)
      origin.script = refusing('model_unavailable', { 'x-should-retry': 'false' });
    const { status, body, headers } = await completion(worker, KEY);
    expect([status, body.error.code]).toEqual([503, 'model_unavailable']);
    expect([headers.get('x-should-retry'), headers.get('retry-after')]).toEqual(['false', null]);
  });

  test('what the caller did wrong is not retried', async () => {
    const error = { message: 'too long', type: 'x', param: 'prompt', code: 'context_length_exceeded' };
    for (const origin of origins) origin.script = (_, wire) => wire.refuse(400, { error });
    expect((await completion(worker, KEY)).body.error.code).toBe('context_length_exceeded');
    expect(origins[0].requests.length + origins[1].requests.length).toBe(1);
  });

  test('nothing is retried after the first event', async () => {
    for (const origin of origins) {
      origin.script = async (request, wire) => {
        wire.send({ type: 'accepted', model: request.model, promptTokens: [2] });
        wire.send({ type: 'token', choice: 0, text: 'x', completionTokens: 1 });
        await new Promise((resolve) => setTimeout(resolve, 100));
        wire.die();
      };
    }
    expect((await completion(worker, KEY)).body.error.code).toBe('upstream_error');
    expect(origins[0].requests.length + origins[1].requests.length).toBe(1);
  });

  test('with one origin gone, everything goes on at the other', async () => {
    origins[0].script = (_, wire) => wire.die();
    for (let count = 0; count < 8; count += 1) {
      expect((await completion(worker, KEY, { prompt: `away ${count}` })).status).toBe(200);
    }
    expect(origins[1].requests).toHaveLength(8);
  });
});

test('several names may stand for models of one origin, and no name is offered that it does not have', async () => {
  origins[0].models = [MODEL, { ...MODEL, id: 'tiny-coder', aliases: ['fim'] }];
  const { data } = (await (await worker.request('/v1/models')).json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['org/tiny', 'writer', 'coder', 'foreign']),
  );
  expect(data.map(({ id }) => id)).not.toContain('gone');
  for (const model of ['writer', 'coder']) {
    expect((await completion(worker, KEY, { model })).body).toMatchObject({ model });
  }
  expect(origins[0].requests.map(({ model }) => model)).toEqual(['org/tiny', 'fim']);
  expect((await completion(worker, KEY, { model: 'gone' })).status).toBe(404);
});

test('requests go where the model is loaded, as long as there is such a place', async () => {
  const unloaded = { ...MODEL, state: 'unloaded' } as const;
  origins[0].models = [unloaded];
  for (let count = 0; count < 8; count += 1) await completion(worker, KEY, { prompt: `where ${count}` });
  expect(origins.map(({ requests }) => requests.length)).toEqual([0, 8]);
  const shown = (await (await worker.request('/v1/models/org/tiny')).json()) as { state: string };
  expect(shown.state).toBe('loaded');
});

describe('an OpenAI-compatible server', () => {
  test('is asked for a stream in its own words, with its own key and the fields we do not know', async () => {
    const { status, body } = await foreign({ some_future_field: { a: 1 }, top_k: 5, seed: 3, stop: ['x'] });
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
      stream: true,
      stream_options: { include_usage: true },
      some_future_field: { a: 1 },
      top_k: 5,
      seed: 3,
      stop: ['x'],
    });
    expect(openAi.bodies[0]).not.toHaveProperty('min_p');
  });

  test('its logprobs keep their names, partial characters included', async () => {
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
    const { body } = await foreign({ logprobs: 1 });
    expect(body.choices[0]?.logprobs).toMatchObject({
      tokens: ['bytes:\\xe2\\x82', 'bytes:\\xac'],
      token_logprobs: [-0.5, -0.25],
    });
    expect(body.choices[0]?.logprobs.top_logprobs[0]).toEqual({ 'bytes:\\xe2\\x82': -0.5 });
  });

  test('that has no raw completions gives 415, saying what to do', async () => {
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
  ])('its %d becomes what the caller can act on', async (theirs, body, status, code) => {
    openAi.script = (_, response) => response.writeHead(theirs).end(JSON.stringify(body));
    const answered = await foreign();
    expect([answered.status, answered.body.error.code]).toEqual([status, code]);
    expect(JSON.stringify(answered.body)).not.toMatch(/bad key|boom/);
  });

  test.each([
    ['an error event', sse({ error: { message: 'out of memory' } })],
    ['an end without [DONE]', ''],
    ['something that is no chunk', 'data: {"choices": 3}\n\n'],
  ])('%s in its stream becomes an error in ours', async (_, tail) => {
    openAi.script = (_body, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(sse({ choices: [{ index: 0, text: 'Hello' }] }));
      setTimeout(() => response.end(tail), 50);
    };
    const { status, body } = await foreign();
    expect([status, body.error.code]).toEqual([502, 'upstream_error']);
  });

  test('that accepts and then says nothing gives 504', async () => {
    openAi.script = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
    };
    expect((await foreign()).status).toBe(504);
  });
});
