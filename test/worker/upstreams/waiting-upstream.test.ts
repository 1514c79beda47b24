import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ndjsonLine } from '../../../shared/framing.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { afterAlone } from '../../../worker/timers/request-timers.ts';
import type { Fetch } from '../../../worker/upstreams/fetch-upstream.ts';
import { OriginUpstream } from '../../../worker/upstreams/origin.ts';
import { RoutedUpstream } from '../../../worker/upstreams/routed-upstream.ts';
import type { EventBatches } from '../../../worker/upstreams/upstream.ts';
import { UpstreamHealth } from '../../../worker/upstreams/upstream-health.ts';
import { request } from '../../support/generation-request.ts';
import { ACCEPTED, DONE, TOKEN } from '../generation/short-generation.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));

/** A generation that an origin has accepted. */
async function begun() {
  const wire = new TransformStream<Uint8Array, Uint8Array>();
  const writer = wire.writable.getWriter();
  const say = (text: string): void => void writer.write(new TextEncoder().encode(text)).catch(() => {});
  const fetch: Fetch = async (_, { signal }) =>
    new Response(wire.readable.pipeThrough(new TransformStream(), { signal: signal! }));
  const origin = new OriginUpstream({
    name: 'origin',
    url: 'http://origin',
    secret: 'secret',
    models: null,
    fetch,
    acceptTimeoutMs: 1000,
    now: Date.now,
    validation: 'every',
  });
  const timeouts = { firstEventMs: 60_000, idleMs: 120_000 };
  const routed = new RoutedUpstream([{ upstream: origin, timeouts }], new UpstreamHealth(Date.now), Date.now);
  say(ndjsonLine(ACCEPTED));
  const { signal } = new AbortController();
  const context = {
    signal,
    traceparent: '',
    after: afterAlone,
    tokensAsIds: false,
    shown: { echo: false, echoLast: null, promptLogprobs: null },
    extra: {},
    endUser: null,
    onIgnoredKeywords: () => undefined,
    onPassedOn: () => undefined,
    onAccepted: () => {},
    report: () => {},
  };
  const stream = await routed.generate(request(), context);
  return { say, end: () => writer.close(), stream };
}

async function all(stream: EventBatches): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  for await (const batch of stream) events.push(...batch);
  return events;
}

describe('a request that waits for a long time at its origin', () => {
  test('does not fail while there are heartbeats', async () => {
    const { say, end, stream } = await begun();
    const events = all(stream);
    for (let minute = 0; minute < 10; minute++) {
      await vi.advanceTimersByTimeAsync(60_000);
      say('\n');
    }
    say(ndjsonLine(DONE));
    await end();
    expect(await events).toEqual([ACCEPTED, DONE]);
  });

  test('does not fail because its client reads slowly', async () => {
    const { say, end, stream } = await begun();
    const iterator = stream[Symbol.asyncIterator]();
    expect(await iterator.next()).toEqual({ value: [ACCEPTED], done: false });
    const next = iterator.next();
    say(ndjsonLine(TOKEN));
    expect(await next).toEqual({ value: [TOKEN], done: false });
    await vi.advanceTimersByTimeAsync(600_000);
    say(ndjsonLine(DONE));
    await end();
    expect(await iterator.next()).toEqual({ value: [DONE], done: false });
  });

  test('fails without heartbeats', async () => {
    const { stream } = await begun();
    const failed = expect(all(stream)).rejects.toMatchObject({ code: 'upstream_timeout' });
    await vi.advanceTimersByTimeAsync(120_000);
    await failed;
  });
});
