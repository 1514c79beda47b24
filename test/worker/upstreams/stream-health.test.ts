import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { completion } from '../admin/admin-client.ts';
import type { Script } from '../support/fake-origin.ts';
import { openStream } from '../support/raw-request.ts';
import { acceptedFor, tokenEvent } from '../support/scripts.ts';
import { KEY } from '../support/worker.ts';
import { promptFor, upstreamsForTests } from './upstreams-for-tests.ts';

/** Tests how the end of a stream affects the circuit breaker of its origin. */

const { origins, another } = upstreamsForTests();
const worker = another({}, { entry: 'test/worker/support/standing-clock.ts' });

/** The Worker's clock is fixed, so that an open breaker stays open; each case is a day later. */
const days = Array.from({ length: 3 }, (_, day) => Date.UTC(2100, 0, 1 + day));
beforeEach(async () => {
  await worker.request('/health', { headers: { 'x-now': String(days.shift()) } });
});

/** Failures in a row that open the breaker. */
const FAILURES = 5;

/** Sends tokens until the connection closes. */
const endless: Script = async (request, wire) => {
  wire.send(...acceptedFor(request));
  for (let step = 1; !wire.gone(); step += 1) {
    wire.send(tokenEvent(step));
    await sleep(5);
  }
};

/** Returns how many of three requests for this origin still go there. */
async function requestsReceived(prompt: string): Promise<number> {
  origins[0].reset();
  for (let count = 0; count < 3; count += 1) await completion(worker, KEY, { prompt });
  return origins[0].requests.length;
}

test('disconnected clients do not count as failures of the origin', async () => {
  const prompt = await promptFor(origins[0], worker);
  for (let count = 0; count < 2 * FAILURES; count += 1) {
    const left = Promise.withResolvers<void>();
    origins[0].script = async (request, wire) => {
      void wire.closed.then(left.resolve);
      await endless(request, wire);
    };
    const { response, leave } = await openStream(worker, { model: 'org/tiny', prompt });
    await response.iterator().next();
    leave();
    await left.promise;
  }
  expect(await requestsReceived(prompt)).toBe(3);
});

test.each<[string, Script]>([
  [
    'break',
    async (request, wire) => {
      wire.send(...acceptedFor(request), tokenEvent(1));
      await sleep(5);
      wire.die();
    },
  ],
  [
    'end with an error event',
    (request, wire) => {
      const error = { code: 'upstream_error', message: 'Broken.', param: null, retryable: true } as const;
      wire.send(...acceptedFor(request), tokenEvent(1), { type: 'error', ...error });
      wire.end();
    },
  ],
])('streams that %s count as failures of the origin', async (_, script) => {
  const prompt = await promptFor(origins[0], worker);
  for (let count = 0; count < FAILURES; count += 1) {
    origins[0].script = script;
    await (await worker.post({ model: 'org/tiny', prompt, max_tokens: 4, stream: true })).text();
  }
  expect(await requestsReceived(prompt)).toBe(0);
});
