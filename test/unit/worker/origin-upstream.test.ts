import { expect, test } from 'vitest';
import type { Carrier } from '../../../worker/upstreams/ask.ts';
import { OriginUpstream } from '../../../worker/upstreams/origin.ts';

/** Answers with a status and the beginning of a body, and then no more. */
const stalling: Carrier = async (_, { signal }) =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"models":['));
        signal!.addEventListener('abort', () => controller.error(signal!.reason));
      },
    }),
  );

const silent: Carrier = (_, { signal }) =>
  new Promise((_resolve, reject) => signal!.addEventListener('abort', () => reject(signal!.reason)));

test.each([
  ['says nothing', silent],
  ['stops in the middle of its answer', stalling],
])('an origin that %s is not waited for longer than its time', async (_, carrier) => {
  const origin = new OriginUpstream({
    ...{ name: 'origin', url: 'http://origin', secret: 'secret', models: null },
    ...{ carrier, acceptTimeoutMs: 20, now: Date.now },
  });
  const { signal } = new AbortController();
  await expect(origin.models(signal)).rejects.toMatchObject({ code: 'upstream_timeout' });
  await expect(origin.tokenizer.info('default', signal)).rejects.toMatchObject({ code: 'upstream_timeout' });
});
