import { expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import type { OriginModel } from '../../../shared/origin-model.ts';
import type { After } from '../../../shared/time-limit.ts';
import { ModelLists } from '../../../worker/upstreams/model-lists.ts';
import type { Upstream } from '../../../worker/upstreams/upstream.ts';

const TTL_MS = 5_000;

const model = (id: string): OriginModel => ({
  id,
  created: 0,
  contextLength: 1_024,
  vocabularySize: 100,
  infill: false,
  aliases: [],
  defaults: {},
  state: 'loaded',
});

/** An upstream that serves a model, by default under the upstream's name, until it is set to hang. */
function upstreamNamed(name: string) {
  const state: { asked: number; swallows: boolean; failure: ApiError | null; model: string } = {
    asked: 0,
    swallows: false,
    failure: null,
    model: name,
  };
  const models = (signal: AbortSignal): Promise<readonly OriginModel[]> => {
    state.asked += 1;
    if (state.failure) return Promise.reject(state.failure);
    if (!state.swallows) return Promise.resolve([model(state.model)]);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('no answer'))));
  };
  return { state, upstream: { name, models } as Partial<Upstream> as Upstream };
}

function world() {
  const clock = { now: 0 };
  const waits = new Set<() => void>();
  const after: After = (_, then) => {
    waits.add(then);
    return () => waits.delete(then);
  };
  const here = upstreamNamed('here');
  const lost = upstreamNamed('lost');
  const lists = new ModelLists(TTL_MS, () => clock.now, after);
  const ask = async (signal = new AbortController().signal) => {
    const models = await lists.all([here.upstream, lost.upstream], signal);
    return models.map(({ id }) => id);
  };
  return { clock, waits, here, lost, lists, ask };
}

test('a hung upstream keeps its models and delays one request at a time', async () => {
  const { clock, waits, lost, ask } = world();
  expect(await ask()).toEqual(['here', 'lost']);
  lost.state.swallows = true;
  clock.now += TTL_MS + 1;
  const first = ask();
  expect(await ask()).toEqual(['here', 'lost']);
  expect(lost.state.asked).toBe(2);
  for (const pass of waits) pass();
  expect(await first).toEqual(['here', 'lost']);
  expect(waits.size).toBe(0);
});

test('its new list counts once it answers again', async () => {
  const { clock, waits, lost, ask } = world();
  await ask();
  lost.state.swallows = true;
  clock.now += TTL_MS + 1;
  const held = ask();
  for (const pass of waits) pass();
  await held;
  Object.assign(lost.state, { swallows: false, model: 'new' });
  expect(await ask()).toEqual(['here', 'lost']);
  clock.now += TTL_MS + 1;
  expect(await ask()).toEqual(['here', 'new']);
});

test('an upstream that never answered is asked again after a second, so that it serves soon after its start', async () => {
  const { clock, lost, lists, ask } = world();
  lost.state.failure = new ApiError('upstream_error', 'refused');
  await ask();
  clock.now += 999;
  await ask();
  expect(lost.state.asked).toBe(1);
  clock.now += 1;
  await ask();
  clock.now += 1_000;
  lost.state.failure = null;
  expect(await ask()).toEqual(['here', 'lost']);
  expect(lists.stateOf('lost', 'lost')).toBe('loaded');
  clock.now += TTL_MS - 1;
  await ask();
  expect(lost.state.asked).toBe(3);
});

test('while the models of an upstream are unknown, a missing model is not a 404', async () => {
  const { clock, here, lost, lists, ask } = world();
  lost.state.failure = new ApiError('upstream_error', 'Not reached.');
  expect(await ask()).toEqual(['here']);
  expect(lists.missing([here.upstream, lost.upstream])).toBe(lost.state.failure);
  // Within the TTL the failed upstream is not called again, so its models stay unknown.
  expect(await ask()).toEqual(['here']);
  expect(lists.missing([here.upstream, lost.upstream])).toBe(lost.state.failure);
  clock.now += TTL_MS + 1;
  lost.state.failure = null;
  expect(await ask()).toEqual(['here', 'lost']);
  lost.state.failure = new ApiError('upstream_error', 'Not reached.');
  clock.now += TTL_MS + 1;
  expect(await ask()).toEqual(['here', 'lost']);
  expect(lists.missing([here.upstream, lost.upstream])).toBeNull();
});

test('a client that disconnects during the first request for a list does not mark the upstream as failed', async () => {
  const { lost, ask } = world();
  lost.state.swallows = true;
  const client = new AbortController();
  const left = ask(client.signal);
  client.abort();
  await left;
  lost.state.swallows = false;
  expect(await ask()).toEqual(['here', 'lost']);
});

test('a model that one upstream cannot read is described by another that can', async () => {
  const { here, lost, lists } = world();
  const broken = { ...model('shared'), contextLength: 0, state: 'unavailable' as const };
  const readable = { ...model('shared'), state: 'unloaded' as const };
  const upstreams = [
    { ...here.upstream, models: async () => [broken] },
    { ...lost.upstream, models: async () => [readable] },
  ];
  expect(await lists.all(upstreams, new AbortController().signal)).toEqual([readable]);
});
