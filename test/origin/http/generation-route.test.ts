import { describe, expect, onTestFinished, test } from 'vitest';
import { request } from '../../support/generation-request.ts';
import { eventsOf } from './generation-events.ts';
import { originForEachTest, RunningOrigin } from './running-origin.ts';

const origin = originForEachTest();

const WHOLE_STREAM = ['accepted', 'started', 'token', 'token', 'finish', 'done'];

describe('POST /generate', () => {
  test('answers NDJSON: accepted first, then the engine’s events in order, ending with done', async () => {
    const response = await origin.call('/generate', { body: request() });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const events = await eventsOf(response);
    expect(events.map(({ type }) => type)).toEqual(WHOLE_STREAM);
    expect(events[0]).toEqual({ type: 'accepted', model: 'tiny', promptTokens: [3] });
  });

  test('ignores the fields that a newer Worker added', async () => {
    const constraint = { type: 'choice' as const, value: ['a'], strength: 1 };
    const body = { ...request({ constraint }), mood: 'new', sampling: { ...request().sampling, topZ: 3 } };
    const response = await origin.call('/generate', { body });
    expect((await eventsOf(response)).map(({ type }) => type)).toEqual(WHOLE_STREAM);
  });

  test('sends no status before the engine has accepted the request', async () => {
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

  test('a full queue is 503 with retry-after, without an abort of the generation', async () => {
    origin.engine.admission = { admitted: false, retryAfterMs: 1500 };
    const error = await origin.error('/generate', { body: request({ account: 'refused' }) });
    expect(error).toMatchObject({ status: 503, code: 'server_is_overloaded' });
    // No usage account exists here, because another origin may have accepted the request.
    expect(await (await origin.call('/usage?account=refused')).json()).toBeNull();
    expect(error.headers.get('retry-after')).toBe('2');
    expect(error.headers.get('retry-after-ms')).toBe('1500');
    expect(origin.engine.aborted).toEqual([]);
  });

  test('an unknown model is a 404; `default` is the one that is served', async () => {
    const error = await origin.error('/generate', { body: request({ model: 'other' }) });
    expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' });
    const [accepted] = await eventsOf(
      await origin.call('/generate', { body: request({ model: 'default' }) }),
    );
    expect(accepted).toMatchObject({ type: 'accepted', model: 'tiny' });
  });

  test('an engine that is being restarted is 503 model_loading', async () => {
    origin.engine.admission = { admitted: false, retryAfterMs: 2000 };
    origin.engine.status = { running: 0, waiting: 0, healthy: false };
    expect(await origin.error('/generate', { body: request() })).toMatchObject({ code: 'model_loading' });
  });

  test('two requests with the same id do not interfere', async () => {
    const answers = await Promise.all(
      [1, 2].map(() => origin.call('/generate', { body: request({ requestId: 'same' }) }).then(eventsOf)),
    );
    expect(answers.map((events) => events.at(-1)?.type)).toEqual(['done', 'done']);
    const [a, b] = origin.engine.submissions;
    expect(a?.requestId).not.toBe(b?.requestId);
  });

  test('sends heartbeats while the request waits and the engine works', async () => {
    const waiting = await (await RunningOrigin.start({ heartbeatMs: 1 })).ready();
    onTestFinished(() => waiting.stop());
    const { engine } = waiting;
    engine.script = () => undefined;
    const response = await waiting.call('/generate', { body: request() });
    const text = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let read = '';
    while (!read.endsWith('\n\n\n')) {
      engine.status = { ...engine.status };
      read += (await text.read()).value;
    }
    engine.finish(engine.submissions[0]?.requestId ?? '');
    while (!read.includes('"done"')) read += (await text.read()).value;
    const types = read
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line).type);
    expect(types).toEqual(WHOLE_STREAM);
  });

  test('a client that disconnects before the first token aborts the generation at once', async () => {
    origin.engine.script = () => undefined;
    const controller = new AbortController();
    const response = await origin.call('/generate', { body: request(), signal: controller.signal });
    expect(response.status).toBe(200);
    const aborted = origin.engine.next();
    controller.abort();
    await aborted;
    expect(origin.engine.aborted).toEqual([origin.engine.submissions[0]?.requestId]);
  });

  test('a client that disconnects during submission aborts the generation', async () => {
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

  test('a client that disconnects while its images wait to be read ends the request', async () => {
    const waiting = Promise.withResolvers<void>();
    const sighted = await RunningOrigin.start({
      readImage: (_, { signal }) => {
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
    const events = await eventsOf(await origin.call('/generate', { body: request() }));
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
    const events = await eventsOf(await origin.call('/generate', { body: request({ constraint }) }));
    expect(events.map(({ type }) => type)).toEqual(WHOLE_STREAM);
  });

  test('a grammar that is refused after six seconds is a 400, too', async () => {
    const message = 'The grammar is too large';
    const event = {
      type: 'error',
      code: 'invalid_grammar',
      message,
      param: 'grammar',
      retryable: false,
    } as const;
    origin.engine.script = (engine, id) => void setTimeout(() => engine.say(id, event), 6_000);
    const error = await origin.error('/generate', {
      body: request({ constraint: { type: 'gbnf', value: 'x' } }),
    });
    expect(error).toMatchObject({ status: 400, code: 'invalid_grammar' });
  });
});
