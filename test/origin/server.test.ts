import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { generationEvent, originHealth } from '../../shared/generation.ts';
import { detokenizeResult, tokenizeResult, tokenizerInfo } from '../../shared/tokenization.ts';
import { request } from '../support/generation-request.ts';
import { RunningOrigin } from './running-origin.ts';

let origin: RunningOrigin;
beforeEach(async () => {
  origin = await (await RunningOrigin.start()).ready();
});
afterEach(() => origin.stop());

async function lines(response: Response) {
  const text = await response.text();
  return text
    .trimEnd()
    .split('\n')
    .map((line) => generationEvent.parse(JSON.parse(line)));
}

describe('GET /usage', () => {
  const account = async (name: string) => (await origin.call(`/usage?account=${name}`)).json();

  test('tells what a generation has used, also of one whose reader left, and nothing of others', async () => {
    await lines(await origin.call('/generate', { body: request({ account: 'whole' }) }));
    expect(await account('whole')).toMatchObject({
      ended: true,
      usage: { promptTokens: 3 },
      finishReasons: ['length'],
    });
    expect(await account('other')).toBeNull();
    expect((await origin.error('/usage?account=whole', { signature: null })).status).toBe(401);

    origin.engine.script = (engine, id) =>
      engine.say(id, { type: 'token', choice: 0, text: 'a', completionTokens: 2 });
    const controller = new AbortController();
    const call = origin.call('/generate', { body: request({ account: 'left' }), signal: controller.signal });
    const used = {
      usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2 },
      finishReasons: [],
    };
    await call;
    expect(await account('left')).toEqual({ ...used, ended: false });
    controller.abort();
    await expect.poll(() => account('left')).toEqual({ ...used, ended: true });
  });
});

describe('POST /generate', () => {
  test('answers NDJSON: accepted first, then the engine’s events in order, ending with done', async () => {
    const response = await origin.call('/generate', { body: request() });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const events = await lines(response);
    expect(events.map(({ type }) => type)).toEqual([
      'accepted',
      'started',
      'token',
      'token',
      'finish',
      'done',
    ]);
    expect(events[0]).toEqual({ type: 'accepted', model: 'tiny', promptTokens: [3] });
  });

  test('does not answer before the engine has taken the request', async () => {
    const admission = Promise.withResolvers<{ admitted: true }>();
    origin.engine.admission = admission.promise;
    let answered = false;
    const call = origin.call('/generate', { body: request() }).then((response) => {
      answered = true;
      return response;
    });
    await origin.engine.next();
    await new Promise(setImmediate);
    expect(answered).toBe(false);
    admission.resolve({ admitted: true });
    expect((await call).status).toBe(200);
  });

  test('a full queue is 503 with a time to wait, and the engine is not told to abort', async () => {
    origin.engine.admission = { admitted: false, retryAfterMs: 1500 };
    const error = await origin.error('/generate', { body: request({ account: 'refused' }) });
    expect(error).toMatchObject({ status: 503, code: 'server_is_overloaded' });
    // Nothing is to be billed here: another origin may have taken it.
    expect(await (await origin.call('/usage?account=refused')).json()).toBeNull();
    expect(error.headers.get('retry-after')).toBe('2');
    expect(error.headers.get('retry-after-ms')).toBe('1500');
    expect(origin.engine.aborted).toEqual([]);
  });

  test('an unknown model is a 404; `default` is the one that is served', async () => {
    const error = await origin.error('/generate', { body: request({ model: 'other' }) });
    expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' });
    const [accepted] = await lines(await origin.call('/generate', { body: request({ model: 'default' }) }));
    expect(accepted).toMatchObject({ type: 'accepted', model: 'tiny' });
  });

  test('an engine that is being restarted is 503 model_loading', async () => {
    origin.engine.admission = { admitted: false, retryAfterMs: 2000 };
    origin.engine.status = { running: 0, waiting: 0, healthy: false };
    expect(await origin.error('/generate', { body: request() })).toMatchObject({ code: 'model_loading' });
  });

  test('two requests of one name do not meet', async () => {
    const answers = await Promise.all(
      [1, 2].map(() => origin.call('/generate', { body: request({ requestId: 'same' }) }).then(lines)),
    );
    expect(answers.map((events) => events.at(-1)?.type)).toEqual(['done', 'done']);
    const [a, b] = origin.engine.submissions;
    expect(a?.requestId).not.toBe(b?.requestId);
  });

  test('a caller that leaves before the first token aborts the generation at once', async () => {
    origin.engine.script = () => undefined;
    const controller = new AbortController();
    const response = await origin.call('/generate', { body: request(), signal: controller.signal });
    expect(response.status).toBe(200);
    const aborted = origin.engine.next();
    controller.abort();
    await aborted;
    expect(origin.engine.aborted).toEqual([origin.engine.submissions[0]?.requestId]);
  });

  test('a caller that leaves while its place in the queue is sought aborts too', async () => {
    origin.engine.admission = new Promise(() => undefined);
    const controller = new AbortController();
    const call = origin.call('/generate', { body: request(), signal: controller.signal });
    await origin.engine.next();
    const aborted = origin.engine.next();
    controller.abort();
    await expect(call).rejects.toThrow();
    await aborted;
    expect(origin.engine.aborted).toHaveLength(1);
  });

  test('a caller that leaves while its images wait to be read ends there', async () => {
    const waiting = Promise.withResolvers<void>();
    const sighted = await RunningOrigin.start({
      readImage: (_, signal) => {
        waiting.resolve();
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    });
    onTestFinished(() => sighted.stop());
    await sighted.ready();
    const controller = new AbortController();
    const body = request({ prompts: ['a<image>'], images: ['data:image/png;base64,AQ=='] });
    const call = sighted.call('/generate', { body, signal: controller.signal });
    await waiting.promise;
    controller.abort();
    await expect(call).rejects.toThrow();
    await sighted.service.whenIdle();
    expect(sighted.engine.submissions).toEqual([]);
    expect(sighted.logLines.join('')).not.toMatch(/"msg":"(failed|refused)"/);
  });

  test('a finished generation is never aborted', async () => {
    await (await origin.call('/generate', { body: request() })).text();
    origin.engine.script = () => undefined;
    const controller = new AbortController();
    await origin.call('/generate', { body: request(), signal: controller.signal });
    const aborted = origin.engine.next();
    controller.abort();
    await aborted;
    expect(origin.engine.aborted).toEqual([origin.engine.submissions[1]?.requestId]);
  });

  test('an error of the engine is the last line of the stream', async () => {
    const error = {
      type: 'error',
      code: 'upstream_error',
      message: 'no',
      param: null,
      retryable: true,
    } as const;
    origin.engine.script = (engine, id) => {
      engine.say(id, { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 });
      engine.say(id, error);
      engine.say(id, { type: 'token', choice: 0, text: 'late', completionTokens: 1 });
    };
    const events = await lines(await origin.call('/generate', { body: request() }));
    expect(events.slice(1)).toEqual([{ type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 }, error]);
  });

  test('a grammar that does not compile is a 400, not a stream', async () => {
    const constraint = { type: 'gbnf', value: 'root ::=' } as const;
    origin.engine.script = (engine, id) => {
      const message = 'Invalid grammar: line 1';
      engine.say(id, { type: 'error', code: 'invalid_grammar', message, param: 'grammar', retryable: false });
    };
    const error = await origin.error('/generate', { body: request({ constraint }) });
    expect(error).toMatchObject({ status: 400, code: 'invalid_grammar', param: 'grammar' });
    origin.engine.script = (engine, id) => engine.finish(id);
    const events = await lines(await origin.call('/generate', { body: request({ constraint }) }));
    expect(events.map(({ type }) => type)).toEqual([
      'accepted',
      'started',
      'token',
      'token',
      'finish',
      'done',
    ]);
  });
});

describe('refusals', () => {
  test.each([
    ['an unknown path', '/nothing', { body: {} }, 404, 'unknown_url'],
    ['bad JSON', '/generate', { body: '{' }, 400, 'invalid_json'],
    ['an empty body', '/generate', { body: '' }, 400, 'invalid_json'],
    ['a body of the wrong shape', '/generate', { body: [] }, 400, 'invalid_type'],
    ['another protocol version', '/generate', { body: { ...request(), version: 2 } }, 400, 'invalid_value'],
    ['an unknown model', '/generate', { body: request({ model: 'x' }) }, 404, 'model_not_found'],
  ] as const)('%s', async (_, path, call, status, code) => {
    expect(await origin.error(path, call)).toMatchObject({ status, code, type: 'invalid_request_error' });
  });

  test('a field that does not fit is named by its path', async () => {
    const wrong = { ...request(), sampling: { ...request().sampling, temperature: 3 } };
    const error = await origin.error('/generate', { body: wrong });
    expect(error).toMatchObject({ status: 400, param: 'sampling.temperature' });
  });

  test('a wrong method names the right one', async () => {
    const error = await origin.error('/generate');
    expect(error).toMatchObject({ status: 405, code: 'method_not_supported' });
    expect(error.headers.get('allow')).toBe('POST');
  });

  test('a body above 8 MiB, announced or not, is 413', async () => {
    const body = 'x'.repeat(8 * 2 ** 20 + 1);
    expect(await origin.error('/generate', { body })).toMatchObject({
      status: 413,
      code: 'request_too_large',
    });
    const chunked = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(origin.url).port), '127.0.0.1', () => {
        socket.write('POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n');
        socket.write(`x-continuo-signature: v1.1.noncenonce.${'0'.repeat(64)}\r\n\r\n`);
        for (let i = 0; i < 9; i += 1) socket.write(`100000\r\n${'x'.repeat(2 ** 20)}\r\n`);
      });
      socket.once('data', (data) => {
        resolve(data.toString());
        socket.destroy();
      });
      socket.on('error', () => undefined);
    });
    expect(chunked).toMatch(/^HTTP\/1\.1 413 /);
  });

  test('a body that never ends arriving is 408', async () => {
    origin.stop();
    const timeouts = {
      headersTimeout: 50,
      requestTimeout: 50,
      connectionsCheckingInterval: 10,
      keepAliveTimeout: 0,
    };
    origin = await RunningOrigin.start({ timeouts });
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(origin.url).port), '127.0.0.1', () =>
        socket.write(
          'POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\nx-continuo-signature: x\r\n\r\n{',
        ),
      );
      socket.once('data', (data) => resolve(data.toString()));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
  });

  test('what is not HTTP gets an envelope', async () => {
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(origin.url).port), '127.0.0.1', () =>
        socket.write('nonsense\r\n\r\n'),
      );
      socket.once('data', (data) => resolve(data.toString()));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_value"/);
  });
});

describe('signatures', () => {
  const refused = { status: 401, code: 'invalid_api_key' };
  const paths = ['/generate', '/tokenize', '/detokenize', '/tokenizer_info', '/models'];
  const verb = (path: string) => (['/tokenizer_info', '/models'].includes(path) ? 'GET' : 'POST');

  test.each(paths)('%s refuses the unsigned', async (path) => {
    const call = { method: verb(path), signature: null };
    expect(await origin.error(path, call)).toMatchObject(refused);
    expect(await origin.error(path, { ...call, signature: 'v1.nonsense' })).toMatchObject(refused);
  });

  test('a signature holds for its method, path, query and body alone', async () => {
    const body = JSON.stringify(request());
    const signed = (method: string, path: string, text: string) => origin.signature(method, path, text);
    for (const signature of [
      await signed('PUT', '/generate', body),
      await signed('POST', '/tokenize', body),
      await signed('POST', '/generate?x=1', body),
      await signed('POST', '/generate', `${body} `),
    ]) {
      expect(await origin.error('/generate', { body, signature })).toMatchObject(refused);
    }
    const signature = await signed('POST', '/generate', body);
    expect((await origin.call('/generate', { body, signature })).status).toBe(200);
  });

  test('a timestamp more than a minute away, either way, is refused', async () => {
    for (const [age, status] of [
      [-59_000, 200],
      [-61_500, 401],
      [59_000, 200],
      [62_000, 401],
    ] as const) {
      const signature = await origin.signature('GET', '/models', '', Date.now() + age);
      expect([age, (await origin.call('/models', { signature })).status]).toEqual([age, status]);
    }
  });

  test('a replay is refused', async () => {
    const signature = await origin.signature('GET', '/models', '');
    expect((await origin.call('/models', { signature })).status).toBe(200);
    expect(await origin.error('/models', { signature })).toMatchObject(refused);
  });
});

describe('GET /health', () => {
  const health = async () => {
    const response = await origin.call('/health', { signature: null });
    return [response.status, originHealth.parse(await response.json()).status];
  };

  test('tells the truth at every stage, with 200 only while requests are taken', async () => {
    const fresh = await RunningOrigin.start();
    const loading = await fresh.call('/health', { signature: null });
    expect([loading.status, await loading.json()]).toMatchObject([503, { status: 'loading', models: [] }]);
    const refusal = await fresh.error('/generate', { body: request() });
    expect(refusal).toMatchObject({ status: 503, code: 'model_loading' });
    expect(refusal.headers.get('retry-after')).toBe('5');
    fresh.stop();

    expect(await health()).toEqual([200, 'ready']);
    origin.engine.status = { running: 0, waiting: 0, healthy: false };
    expect(await health()).toEqual([503, 'unhealthy']);
    origin.service.drain();
    expect(await health()).toEqual([503, 'draining']);
  });

  test('draining lets the running finish and takes no more', async () => {
    origin.engine.script = () => undefined;
    const running = await origin.call('/generate', { body: request() });
    origin.service.drain();
    let idle = false;
    const whenIdle = origin.service.whenIdle().then(() => {
      idle = true;
    });
    const refusal = await origin.error('/generate', { body: request() });
    expect(refusal).toMatchObject({ status: 503, code: 'server_is_overloaded' });
    expect(idle).toBe(false);
    origin.engine.finish(origin.engine.submissions[0]?.requestId ?? '');
    expect((await lines(running)).at(-1)?.type).toBe('done');
    await whenIdle;
  });
});

test('GET /models describes what is served', async () => {
  const { models } = (await (await origin.call('/models')).json()) as { models: unknown[] };
  const { vocabularySize } = origin.model;
  expect(models).toEqual([
    {
      id: 'tiny',
      created: 1_700_000_000,
      contextLength: 64,
      vocabularySize,
      infill: true,
      aliases: [],
      defaults: {},
      state: 'loaded',
    },
  ]);
});

describe('the tokenizer', () => {
  test('tokenises as a prompt would be, and back', async () => {
    const prompt = 'hello <|endoftext|> é\n';
    const body = { model: 'tiny', prompt, addSpecialTokens: true };
    const { tokens, tokenStrings } = tokenizeResult.parse(
      await (await origin.call('/tokenize', { body })).json(),
    );
    expect(tokens).toEqual(
      origin.model.tokenizer.encode(prompt, { addSpecialTokens: true, parseSpecial: true }),
    );
    expect(tokenStrings).toHaveLength(tokens.length);
    expect(tokenStrings[0]).toBe('hello');
    const back = await origin.call('/detokenize', { body: { model: 'tiny', tokens } });
    expect(detokenizeResult.parse(await back.json()).text).toBe(prompt);
  });

  test('refuses a text whose answer would hold everybody up', async () => {
    const body = { model: 'tiny', prompt: 'x'.repeat(2 ** 20 + 1), addSpecialTokens: true };
    const refusal = { status: 400, code: 'string_above_max_length', param: 'prompt' };
    expect(await origin.error('/tokenize', { body })).toMatchObject(refusal);
  });

  test('describes itself', async () => {
    const answer = await origin.call('/tokenizer_info?model=tiny');
    expect(tokenizerInfo.parse(await answer.json())).toMatchObject({
      model: 'tiny',
      contextLength: 64,
      bosToken: null,
      eosToken: '<|endoftext|>',
      addBosToken: false,
    });
  });

  test.each([
    ['/tokenize', { model: 'x', prompt: '', addSpecialTokens: true }, 404, 'model'],
    ['/detokenize', { model: 'tiny', tokens: [1, 99_999] }, 400, 'tokens[1]'],
    ['/detokenize', { model: 'tiny', tokens: [-1] }, 400, 'tokens.0'],
  ] as const)('%s refuses %j', async (path, body, status, param) => {
    expect(await origin.error(path, { body })).toMatchObject({ status, param });
  });
});

test('GET /metrics counts requests, tokens, times and aborts', async () => {
  origin.engine.status = { running: 3, waiting: 2, healthy: true };
  await (await origin.call('/generate', { body: request() })).text();
  await origin.error('/generate', { body: '{' });
  const response = await origin.call('/metrics', { signature: null });
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  const text = await response.text();
  for (const line of [
    'continuo_origin_running_sequences{model="tiny"} 3',
    'continuo_origin_waiting_sequences{model="tiny"} 2',
    'continuo_origin_requests_total{route="/generate",status="200"} 1',
    'continuo_origin_requests_total{route="/generate",status="400"} 1',
    'continuo_origin_prompt_tokens_total{model="tiny"} 3',
    'continuo_origin_cached_tokens_total{model="tiny"} 1',
    'continuo_origin_completion_tokens_total{model="tiny"} 2',
    'continuo_origin_first_token_seconds_count{model="tiny"} 1',
    'continuo_origin_inter_token_seconds_count{model="tiny"} 1',
    'continuo_origin_model_state{model="tiny",state="loaded"} 1',
    'continuo_origin_model_state{model="tiny",state="failed"} 0',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});

test('the log has no prompt, completion, secret or signature, whatever happens', async () => {
  const prompts = ['the PROMPT nobody may see'];
  await (await origin.call('/generate', { body: request({ prompts }) })).text();
  await origin.error('/generate', { body: request({ prompts, suffix: 'SUFFIX', model: 'other' }) });
  await origin.error('/generate', { body: { ...request({ prompts }), stop: ['PROMPT', 4] } });
  origin.engine.script = () => {
    throw new Error('unreachable');
  };
  const log = origin.logLines.join('');
  expect(log).toContain('"requestId":"request-1"');
  for (const secret of ['PROMPT', 'SUFFIX', ' two', 'a secret of', 'v1.']) expect(log).not.toContain(secret);
});
