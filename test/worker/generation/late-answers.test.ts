import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { completionResponse } from '../../../shared/completion-response.ts';
import type { Wire } from '../support/fake-origin.ts';
import { acceptedFor, defaultScript, stepsFor } from '../support/scripts.ts';
import { payloadsOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';

/** Answers that take longer than EARLY_ANSWER_MS. */

const log = new WorkerdLog(/Uncaught exception|"event":"request"/);
const { worker, origin } = workerForTests(
  { EARLY_ANSWER_MS: '100', KEEP_ALIVE_MS: '50', LOG_REQUESTS: 'true' },
  { log },
);

type Fields = Readonly<Record<string, unknown>>;

const post = (fields: Fields, headers: Readonly<Record<string, string>> = {}) =>
  worker.post({ model: 'default', prompt: 'Hi', max_tokens: 4, ...fields }, { headers });

/** Lets the origin do `then` once the client has received the first bytes of its response. */
async function lateAnswer(
  fields: Fields,
  then: (wire: Wire, request: Parameters<typeof defaultScript>[0]) => unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly response: Response; readonly text: Promise<string> }> {
  const begun = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    if (request.constraint !== null) wire.send(...acceptedFor(request));
    await begun.promise;
    await then(wire, request);
  };
  const response = await post(fields, headers);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const first = await reader.read();
  begun.resolve();
  const rest = async () => {
    let text = first.value ?? '';
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    return text;
  };
  return { response, text: rest() };
}

/** Waits for the log line of a later request, so that all earlier lines have arrived. */
async function expectNoUncaughtException(): Promise<void> {
  origin.reset();
  const id = (await post({})).headers.get('x-request-id')!;
  await expect.poll(() => log.lines.some((line) => line.includes(id))).toBe(true);
  expect(log.lines.filter((line) => line.includes('Uncaught exception'))).toEqual([]);
}

describe('a plain answer that takes long', () => {
  test('begins with white space and is the same JSON, also with several choices', async () => {
    const fields = { n: 2, best_of: 3, logprobs: 1, seed: 1 };
    const early = (await (await post(fields)).json()) as Record<string, unknown>;
    const { response, text } = await lateAnswer(fields, (wire, request) => defaultScript(request, wire));
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    expect(await text).toMatch(/^ +\{/);
    const late = completionResponse.parse(JSON.parse(await text));
    expect(late).toEqual({ ...early, id: late.id, created: late.created });
  });

  test.each<[string, (wire: Wire, request: Parameters<typeof defaultScript>[0]) => unknown]>([
    ['refuses the request', (wire) => wire.refuse(500, {})],
    [
      'fails in the middle',
      (wire, request) => {
        wire.send(...stepsFor(request).slice(0, 2).flat());
        wire.die();
      },
    ],
    [
      'reports an error',
      (wire, request) => {
        wire.send(...acceptedFor(request));
        wire.send({ type: 'error', code: 'upstream_error', message: 'Lost.', param: null, retryable: false });
        wire.end();
      },
    ],
  ])('breaks the connection if the origin %s, which is no uncaught exception', async (_, fail) => {
    const { text } = await lateAnswer({}, fail);
    await expect(text).rejects.toThrow();
    await expectNoUncaughtException();
  });

  describe('with a constraint', () => {
    const grammar = { grammar: 'root ::= "a"' };

    test('keeps the status of a refusal, however long the origin compiles', async () => {
      origin.script = async (_, wire) => {
        await sleep(400);
        const error = { message: 'No such rule.', type: 'x', param: 'grammar', code: 'invalid_grammar' };
        wire.refuse(400, { error });
      };
      const response = await post(grammar);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_grammar', param: 'grammar' } });
    });

    test('begins when the origin has accepted the request', async () => {
      const { text } = await lateAnswer(grammar, (wire, request) => {
        for (const events of stepsFor(request).slice(1)) wire.send(...events);
        wire.end();
      });
      expect(await text).toMatch(/^ +\{/);
    });
  });

  test('is stored for its idempotency key without the white space', async () => {
    const headers = { 'idempotency-key': 'late' };
    const { text } = await lateAnswer({}, (wire, request) => defaultScript(request, wire), headers);
    expect(await text).toMatch(/^ +\{/);
    const again = await post({}, headers);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.text()).toBe((await text).trimStart());
    expect(origin.requests).toHaveLength(1);
  });

  test('frees its idempotency key if it fails', async () => {
    const headers = { 'idempotency-key': 'late-failure' };
    const { text } = await lateAnswer({}, (wire) => wire.refuse(500, {}), headers);
    await expect(text).rejects.toThrow();
    await expectNoUncaughtException();
    await expect.poll(async () => (await post({}, headers)).status).toBe(200);
  });

  test('arrives through the object of a resumable request', async () => {
    const headers = { 'x-resumable': 'true' };
    const { text } = await lateAnswer({}, (wire, request) => defaultScript(request, wire), headers);
    expect(JSON.parse(await text)).toMatchObject({ object: 'text_completion' });
  });
});

describe('a stream whose first event takes long', () => {
  test('begins with keep-alive comments', async () => {
    const { text } = await lateAnswer({ stream: true }, (wire, request) => defaultScript(request, wire));
    expect(await text).toMatch(/^: keep-alive\n\n/);
    expect(await text).toMatch(/data: \[DONE\]\n\n$/);
  });

  test('ends with an error event and [DONE] if the origin refuses', async () => {
    const { response, text } = await lateAnswer({ stream: true }, (wire) => wire.refuse(500, {}));
    expect(response.status).toBe(200);
    expect(payloadsOf(await text)).toMatchObject([{ error: { code: 'upstream_error' } }]);
  });
});
