import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ndjsonLine } from '../../../shared/framing.ts';
import { openStream } from '../support/raw-request.ts';
import { acceptedFor, tokenEvent } from '../support/scripts.ts';
import { blocksOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({ KEEP_ALIVE_MS: '150' });

// What closes a connection while nothing is written is tested in test/worker/limits/usage/departures.test.ts.
test('a client that disconnects while events flow closes the connection of the origin', async () => {
  const left = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    void wire.closed.then(left.resolve);
    wire.send(...acceptedFor(request));
    for (let step = 1; !wire.gone(); step += 1) {
      wire.send(tokenEvent(step));
      await sleep(5);
    }
  };
  const { response, leave } = await openStream(worker);
  let seen = '';
  for await (const part of response) {
    seen += String(part);
    if (blocksOf(seen).length >= 3) break;
  }
  leave();
  await left.promise;
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
