import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ndjsonLine } from '../../../shared/framing.ts';
import { openStream, reset, sendRaw } from '../support/raw-request.ts';
import { acceptedFor, tokenEvent } from '../support/scripts.ts';
import { blocksOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({ KEEP_ALIVE_MS: '150' });

/** Starts a generation without an end; `left` resolves when the Worker has closed its connection. */
function endless(everyMs: number | null): { started: Promise<void>; left: Promise<void> } {
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
  return { started: started.promise, left: left.promise };
}

describe('a disconnected client', () => {
  test('closes the origin’s connection while events flow', async () => {
    const generation = endless(5);
    const { response, leave } = await openStream(worker);
    let seen = '';
    for await (const part of response) {
      seen += String(part);
      if (blocksOf(seen).length >= 3) break;
    }
    leave();
    await generation.left;
  });

  test('closes the origin’s connection while nothing is written', async () => {
    const generation = endless(null);
    const { leave } = await openStream(worker);
    await generation.started;
    leave();
    await generation.left;
  });

  test('closes the origin’s connection during a plain request', async () => {
    const generation = endless(null);
    const request = sendRaw(worker, {});
    await generation.started;
    reset(request);
    await generation.left;
  });

  test('closes the origin’s connection before the origin has answered', async () => {
    const arrived = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    origin.script = (_, wire) => {
      void wire.closed.then(left.resolve);
      arrived.resolve();
    };
    const request = sendRaw(worker, { stream: true });
    await arrived.promise;
    reset(request);
    await left.promise;
  });
});

test('a client that does not read slows the origin down instead of filling the Worker’s memory', async () => {
  const drained = Promise.withResolvers<number>();
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request));
    const line = ndjsonLine(tokenEvent(1, 'x'.repeat(64 * 1_024)));
    let sent = 0;
    // A write that takes longer than a second means that all buffers are full.
    while (
      sent < 64 * 2 ** 20 &&
      (await Promise.race([wire.raw(line).then(() => true), sleep(1_000, false)]))
    ) {
      sent += line.length;
    }
    drained.resolve(sent);
    wire.die();
  };
  const { response, leave } = await openStream(worker);
  response.pause();
  expect(await drained.promise).toBeLessThan(64 * 2 ** 20);
  leave();
});
