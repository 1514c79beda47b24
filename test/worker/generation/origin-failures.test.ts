import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ndjsonLine } from '../../../shared/framing.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import type { Script, Wire } from '../support/fake-origin.ts';
import { acceptedFor, tokenEvent } from '../support/scripts.ts';
import { payloadsOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests();

const post = (body: Record<string, unknown> = {}) =>
  worker.post({ model: 'default', prompt: 'Hi', max_tokens: 4, ...body });

const ENDINGS: Readonly<Record<string, (wire: Wire) => void | Promise<void>>> = {
  'cuts the connection': async (wire) => {
    await sleep(20);
    wire.die();
  },
  'ends the stream without a terminal event': (wire) => wire.end(),
  'ends in the middle of a line': async (wire) => {
    await wire.raw('{"type":"tok');
    wire.end();
  },
  'sends a line that is not JSON': (wire) => void wire.raw('oops\n'),
  'sends an event without a type': (wire) => void wire.raw(ndjsonLine({ choice: 0 })),
  'sends an event without its fields': (wire) => void wire.raw(ndjsonLine({ type: 'token', choice: 0 })),
};

const dying =
  (end: (wire: Wire) => void | Promise<void>): Script =>
  async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1), tokenEvent(2));
    await end(wire);
  };

describe('an origin that fails mid-stream', () => {
  test.each(Object.entries(ENDINGS))('%s: one error event and [DONE] for a stream', async (_, end) => {
    origin.script = dying(end);
    const payloads = payloadsOf(await (await post({ stream: true })).text());
    expect(payloads.slice(0, -1)).toMatchObject([
      { choices: [{ text: ' t1' }] },
      { choices: [{ text: ' t2' }] },
    ]);
    expect(payloads.at(-1)).toMatchObject({
      error: { type: 'server_error', code: 'upstream_error', param: null, message: expect.any(String) },
    });
  });

  test.each(Object.entries(ENDINGS))('%s: 502 for a plain request', async (_, end) => {
    origin.script = dying(end);
    const response = await post();
    expect(response.status).toBe(502);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_error' } });
  });

  test('the error event of a broken stream has the code of the client’s dialect', async () => {
    origin.script = dying((wire) => wire.end());
    const body = { model: 'default', prompt: 'Hi', max_tokens: 4, stream: true };
    const answer = await worker.post(body, { headers: { 'x-dialect': 'vllm' } });
    expect(payloadsOf(await answer.text()).at(-1)).toMatchObject({ error: { code: 502 } });
  });

  test('the origin’s error event reaches the client with its code, after the text before it', async () => {
    const error = {
      code: 'upstream_timeout',
      message: 'Out of time.',
      param: null,
      retryable: true,
    } as const;
    origin.script = (request, wire) => {
      wire.send(...acceptedFor(request), tokenEvent(1), { type: 'error', ...error });
      wire.end();
    };
    const payloads = payloadsOf(await (await post({ stream: true })).text());
    expect(payloads).toMatchObject([
      { choices: [{ text: ' t1' }] },
      { error: { code: 'upstream_timeout', message: 'Out of time.' } },
    ]);
    expect((await post()).status).toBe(504);
  });

  test('finished choices stay finished', async () => {
    origin.script = (request, wire) => {
      const finish: GenerationEvent = {
        type: 'finish',
        choice: 0,
        reason: 'stop',
        stopReason: null,
        completionTokens: 1,
      };
      wire.send(...acceptedFor(request), tokenEvent(1), finish);
      setTimeout(() => wire.die(), 20);
    };
    const payloads = payloadsOf(await (await post({ stream: true, n: 2 })).text());
    expect(payloads[1]).toMatchObject({ choices: [{ index: 0, finish_reason: 'stop' }] });
    expect(payloads.at(-1)).toHaveProperty('error');
  });

  test('an error before the first event is an HTTP status, also for a stream', async () => {
    origin.script = (_, wire) => {
      const message = 'Invalid grammar.';
      wire.send({ type: 'error', code: 'invalid_grammar', message, param: 'grammar', retryable: false });
      wire.end();
    };
    const response = await post({ stream: true });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_grammar', param: 'grammar' } });
  });

  test('the next request after a failure is served', async () => {
    origin.script = dying((wire) => wire.die());
    await (await post({ stream: true })).text();
    origin.reset();
    expect((await post()).status).toBe(200);
  });
});
