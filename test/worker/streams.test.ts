import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ndjsonLine } from '../../shared/framing.ts';
import type { GenerationEvent } from '../../shared/generation.ts';
import type { Script, Wire } from './support/fake-origin.ts';
import { acceptedFor, stepsFor } from './support/scripts.ts';
import { blocksOf, chunksOf, payloadsOf } from './support/sse.ts';
import { KEY } from './support/worker.ts';
import { workerForTests } from './support/worker-for-tests.ts';

const KEEP_ALIVE_MS = 150;

const { worker, origin } = workerForTests({ KEEP_ALIVE_MS: String(KEEP_ALIVE_MS) });

const BODY = { model: 'default', prompt: 'Hi', max_tokens: 4 };
const post = (body: Record<string, unknown> = {}) => worker.post({ ...BODY, ...body });

const tokenEvent = (step: number, text = ` t${step}`): GenerationEvent => ({
  type: 'token',
  choice: 0,
  text,
  completionTokens: step,
});

const ENDINGS: Readonly<Record<string, (wire: Wire) => void | Promise<void>>> = {
  'cuts the connection': async (wire) => {
    await sleep(20);
    wire.die();
  },
  'ends as if all were well': (wire) => wire.end(),
  'ends in the middle of a line': async (wire) => {
    await wire.raw('{"type":"tok');
    wire.end();
  },
  'sends what is no JSON': (wire) => void wire.raw('oops\n'),
  'sends an event of no known type': (wire) => void wire.raw(ndjsonLine({ type: 'confetti' })),
  'sends an event without its fields': (wire) => void wire.raw(ndjsonLine({ type: 'token', choice: 0 })),
};

const dying =
  (end: (wire: Wire) => void | Promise<void>): Script =>
  async (request, wire) => {
    wire.send(...acceptedFor(request), tokenEvent(1), tokenEvent(2));
    await end(wire);
  };

describe('C.7: an origin that fails mid-stream', () => {
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

  test('its own error event reaches the client with its code, after the text before it', async () => {
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

  test('choices that had finished stay finished', async () => {
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

  test('an error before anything was generated is an HTTP status, also for a stream', async () => {
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

describe('framing', () => {
  test('lines and characters may be split anywhere between origin and Worker', async () => {
    origin.script = async (request, wire) => {
      const text = '🙂 – ünï';
      const [start = [], ...rest] = stepsFor({ ...request, maxTokens: 0 });
      const lines = [...start, tokenEvent(1, text), ...rest.flat()].map(ndjsonLine).join('');
      const bytes = Buffer.from(lines, 'utf8');
      const from = bytes.indexOf('🙂') - 2;
      await wire.raw(bytes.subarray(0, from));
      for (let index = from; index < from + 20; index += 1) {
        await sleep(2);
        await wire.raw(bytes.subarray(index, index + 1));
      }
      await wire.raw(bytes.subarray(from + 20));
      wire.end();
    };
    const chunks = chunksOf(await (await post({ stream: true })).text());
    expect(chunks[0]?.choices[0]?.text).toBe('🙂 – ünï');
  });

  test('C.6: silence brings comments, each in a write of its own; events bring none', async () => {
    origin.script = async (request, wire) => {
      wire.send(...acceptedFor(request));
      await sleep(KEEP_ALIVE_MS * 2.5);
      for (const events of stepsFor(request).slice(1)) wire.send(...events);
      wire.end();
    };
    const { response } = await openStream();
    const writes: string[] = [];
    for await (const part of response) writes.push(String(part));
    const comments = writes.filter((write) => write.includes(':') && !write.includes('data:'));
    expect(comments.length).toBeGreaterThanOrEqual(2);
    for (const comment of comments) expect(comment).toBe(': keep-alive\n\n');
    const blocks = blocksOf(writes.join(''));
    expect(blocks.findLastIndex((block) => block.startsWith(':'))).toBeLessThan(
      blocks.findIndex((block) => block.startsWith('data:')),
    );
  });
});

interface OpenStream {
  readonly response: IncomingMessage;
  /** Closes the client's connection. */
  leave(): void;
}

/** A streaming request on a connection of its own; undici would hide when it really closes. */
async function openStream(body: Record<string, unknown> = {}): Promise<OpenStream> {
  const request = sendRaw({ stream: true, ...body });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { response, leave: () => request.destroy() };
}

function sendRaw(body: Record<string, unknown>) {
  const request = httpRequest(`${worker.url}/v1/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  });
  request.on('error', () => {});
  request.end(JSON.stringify({ ...BODY, ...body }));
  return request;
}

/**
 * Drops the connection. A polite close says no more than that the client has sent everything, which workerd by itself
 * cannot tell from waiting; on the platform the edge in front of it can.
 */
const reset = (request: ClientRequest): void => {
  request.socket?.resetAndDestroy();
};

/** A generation that goes on until the Worker leaves; resolves when it has. */
function endless(everyMs: number | null): {
  started: Promise<void>;
  left: Promise<void>;
  sent: () => number;
} {
  const started = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  let step = 0;
  origin.script = async (request, wire) => {
    void wire.closed.then(left.resolve);
    wire.send(...acceptedFor(request));
    started.resolve();
    while (everyMs !== null && !wire.gone()) {
      step += 1;
      wire.send(tokenEvent(step));
      await sleep(everyMs);
    }
  };
  return { started: started.promise, left: left.promise, sent: () => step };
}

describe('H.8 and C.8: the client leaves', () => {
  test('while events flow: the origin’s connection is closed', async () => {
    const generation = endless(5);
    const { response, leave } = await openStream();
    let seen = '';
    for await (const part of response) {
      seen += String(part);
      if (blocksOf(seen).length >= 3) break;
    }
    leave();
    await generation.left;
  });

  test('while nothing is written: the origin’s connection is closed', async () => {
    const generation = endless(null);
    const { leave } = await openStream();
    await generation.started;
    leave();
    await generation.left;
  });

  test('in the middle of a plain request: the origin’s connection is closed', async () => {
    const generation = endless(null);
    const request = sendRaw({});
    await generation.started;
    reset(request);
    await generation.left;
  });

  test('before the origin has answered at all: the origin’s connection is closed', async () => {
    const arrived = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    origin.script = (_, wire) => {
      void wire.closed.then(left.resolve);
      arrived.resolve();
    };
    const request = sendRaw({ stream: true });
    await arrived.promise;
    reset(request);
    await left.promise;
  });
});

test('a client that does not read stops the origin instead of filling the Worker', async () => {
  const drained = Promise.withResolvers<number>();
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request));
    const line = ndjsonLine(tokenEvent(1, 'x'.repeat(64 * 1_024)));
    let sent = 0;
    // Until a write does not leave within a second: the pipe is full.
    while (
      sent < 64 * 2 ** 20 &&
      (await Promise.race([wire.raw(line).then(() => true), sleep(1_000, false)]))
    ) {
      sent += line.length;
    }
    drained.resolve(sent);
    wire.die();
  };
  const { response, leave } = await openStream();
  response.pause();
  expect(await drained.promise).toBeLessThan(64 * 2 ** 20);
  leave();
});
