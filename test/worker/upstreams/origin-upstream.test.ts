import { expect, test, vi } from 'vitest';
import type { Fetch } from '../../../worker/upstreams/fetch-upstream.ts';
import { OriginUpstream } from '../../../worker/upstreams/origin.ts';

const originWith = (fetch: Fetch, acceptTimeoutMs = 60_000) =>
  new OriginUpstream({
    name: 'origin',
    url: 'http://origin',
    secret: 'secret',
    models: null,
    fetch,
    acceptTimeoutMs,
    now: Date.now,
    validation: 'every',
  });

/** Rejects at once if the signal has aborted, as fetch does, as signing may outlast the timeout. */
function onAbort(signal: AbortSignal | null | undefined, leave: (reason: unknown) => void): void {
  if (signal!.aborted) leave(signal!.reason);
  else signal!.addEventListener('abort', () => leave(signal!.reason));
}

/** Answers with a status and the start of a body, then stalls. */
const stalling: Fetch = async (_, { signal }) =>
  new Response(
    new ReadableStream({
      type: 'bytes',
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"models":['));
        onAbort(signal, (reason) => controller.error(reason));
      },
    }),
  );

const silent: Fetch = (_, { signal }) => new Promise((_resolve, reject) => onAbort(signal, reject));

test.each([
  { origin: 'does not answer', fetch: silent, ms: 20 },
  { origin: 'does not answer', fetch: silent, ms: 0 },
  { origin: 'stalls within its answer', fetch: stalling, ms: 20 },
  { origin: 'stalls within its answer', fetch: stalling, ms: 0 },
])('an origin that $origin fails after its timeout of $ms ms', async ({ fetch, ms }) => {
  const origin = originWith(fetch, ms);
  const { signal } = new AbortController();
  await expect(origin.models(signal)).rejects.toMatchObject({ code: 'upstream_timeout' });
  await expect(origin.tokenizer.info('default', signal)).rejects.toMatchObject({ code: 'upstream_timeout' });
});

test('an origin whose answer is too long to hold in memory fails', async () => {
  let sent = 0;
  const piece = new TextEncoder().encode('x'.repeat(2 ** 20));
  const endless: Fetch = async () =>
    new Response(
      new ReadableStream({
        type: 'bytes',
        pull(controller) {
          sent += 1;
          controller.enqueue(piece);
        },
      }),
    );
  const asked = { model: 'tiny', tenantId: 'tenant', weight: 1, tokens: [1] };
  const answer = originWith(endless).tokenizer.detokenize(asked, new AbortController().signal);
  await expect(answer).rejects.toMatchObject({ code: 'upstream_error' });
  expect(sent).toBeLessThan(20);
});

test('an answer that breaks off is not reported as one of another version', async () => {
  const report = vi.spyOn(console, 'error').mockImplementation(() => {});
  const ask = (body: string) => {
    const headers = { 'content-length': String(body.length) };
    const origin = originWith(async () => new Response(body, { headers }));
    return origin.models(new AbortController().signal);
  };
  await expect(ask('{"models":[')).rejects.toMatchObject({ code: 'upstream_error' });
  expect(report).not.toHaveBeenCalled();
  await expect(ask('{"models":1}')).rejects.toMatchObject({ code: 'upstream_error' });
  expect(report).toHaveBeenCalledOnce();
  report.mockRestore();
});
