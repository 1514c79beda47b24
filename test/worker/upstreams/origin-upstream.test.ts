import { expect, test } from 'vitest';
import type { Carrier } from '../../../worker/upstreams/ask.ts';
import { OriginUpstream } from '../../../worker/upstreams/origin.ts';

/** As fetch does, which asks nobody once its signal has fired: signing alone may take as long as these origins have. */
function onAbort(signal: AbortSignal | null | undefined, leave: (reason: unknown) => void): void {
  if (signal!.aborted) leave(signal!.reason);
  else signal!.addEventListener('abort', () => leave(signal!.reason));
}

/** Answers with a status and the beginning of a body, and then no more. */
const stalling: Carrier = async (_, { signal }) =>
  new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"models":['));
        onAbort(signal, (reason) => controller.error(reason));
      },
    }),
  );

const silent: Carrier = (_, { signal }) => new Promise((_resolve, reject) => onAbort(signal, reject));

test.each([
  { origin: 'says nothing', carrier: silent, ms: 20 },
  { origin: 'says nothing', carrier: silent, ms: 0 },
  { origin: 'stops in the middle of its answer', carrier: stalling, ms: 20 },
  { origin: 'stops in the middle of its answer', carrier: stalling, ms: 0 },
])('an origin that $origin is not waited for longer than its $ms ms', async ({ carrier, ms }) => {
  const origin = new OriginUpstream({
    ...{ name: 'origin', url: 'http://origin', secret: 'secret', models: null },
    ...{ carrier, acceptTimeoutMs: ms, now: Date.now },
  });
  const { signal } = new AbortController();
  await expect(origin.models(signal)).rejects.toMatchObject({ code: 'upstream_timeout' });
  await expect(origin.tokenizer.info('default', signal)).rejects.toMatchObject({ code: 'upstream_timeout' });
});
