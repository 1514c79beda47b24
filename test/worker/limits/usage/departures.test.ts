import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import { close, reset, sendRaw } from '../../support/raw-request.ts';
import { acceptedFor, holdRequests, tokenEvent } from '../../support/scripts.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';

const { worker, origin } = workerForTests({
  ADMIN_KEY_SHA256,
  EARLY_ANSWER_MS: '300',
  KEEP_ALIVE_MS: '200',
  // Longer than a test waits, so that no reservation expires.
  RESERVATION_TTL_MS: '600000',
});

/** Plays a request that waits in the queue, or generates 5 tokens without an end. */
const play = (phase: string) =>
  holdRequests(origin, (request, wire) => {
    const [accepted, ...started] = acceptedFor(request);
    wire.send(accepted!);
    if (phase === 'running') wire.send(...started, tokenEvent(5));
  });

describe('a client that disconnects frees its slot and is billed', () => {
  const cases = ['FIN', 'RST'].flatMap((how) =>
    ['stream', 'plain'].flatMap((kind) => ['waiting', 'running'].map((phase) => [how, kind, phase] as const)),
  );
  test.each(cases)('%s during a %s request that is %s', async (how, kind, phase) => {
    const tenant = `${how}-${kind}-${phase}`.toLowerCase();
    const { key } = await tenantWithKey(worker, tenant, { concurrent_requests: 1 });
    const { begun, left } = play(phase);
    const request = sendRaw(worker, { stream: kind === 'stream' }, { authorization: `Bearer ${key}` });
    await begun;
    if (how === 'RST') reset(request);
    else if (kind === 'plain') close(request);
    else close(request, ((await once(request, 'response')) as [IncomingMessage])[0]);
    await left;
    origin.reset();
    await eventually(
      () => completion(worker, key, { max_tokens: 1 }),
      ({ status }) => status === 200,
    );
    const { body } = await eventually(
      () => admin(worker, 'GET', `/usage?tenant=${tenant}`),
      (answer) => answer.body.total.requests === 2,
    );
    // A prompt that waits has not been computed.
    const [prompt, tokens] = phase === 'running' ? [2, 5] : [0, 0];
    expect(body.total).toMatchObject({
      cancelled: 1,
      prompt_tokens: 2 + prompt,
      completion_tokens: 1 + tokens,
    });
  });

  test('FIN before an upstream has answered, during a stream and a plain request', async () => {
    for (const stream of [true, false]) {
      const { begun, left } = holdRequests(origin);
      const request = sendRaw(worker, { stream });
      await begun;
      await sleep(20);
      close(request);
      await left;
    }
  });
});
