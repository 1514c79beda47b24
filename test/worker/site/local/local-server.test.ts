import { beforeEach, expect, test, vi } from 'vitest';
import { send } from '../../../../worker/site/api/client.ts';
import { type Opening, openLocal } from '../../../../worker/site/local/local-server.ts';
import type { FromThread, ToThread } from '../../../../worker/site/local/messages.ts';

/** A thread that answers what the test says. */
class FakeThread extends EventTarget {
  static current: FakeThread;
  readonly received: ToThread[] = [];
  answersPings = true;

  constructor() {
    super();
    FakeThread.current = this;
  }

  postMessage(message: ToThread): void {
    this.received.push(message);
    if (message.type === 'ping' && this.answersPings) this.say({ type: 'pong' });
  }

  say = (data: FromThread) => this.dispatchEvent(new MessageEvent('message', { data }));
  terminate(): void {}
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('Worker', FakeThread);
});

/** Opens a model and asks it, and returns what became of both. */
function asked() {
  const states: Opening[] = [];
  const end = openLocal({ type: 'open-built-in', device: 'auto' }, (opening) => states.push(opening));
  const thread = FakeThread.current;
  const device = { kind: 'wasm', reason: null } as const;
  thread.say({ type: 'opened', name: 'mini', context: 64, kept: true, device, card: null });
  const opened = states.at(-1)!;
  const local = opened.state === 'open' ? opened.server : null;
  const connection = { key: null, dialect: null, local };
  const answer = send(connection, '/v1/completions', { body: { model: 'mini@browser' } });
  const failure = answer.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { states, end, thread, failure };
}

test('a thread that answers no more ends its requests, and the model can be opened again', async () => {
  const { states, thread, failure } = asked();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(states.at(-1)).toMatchObject({ state: 'open' });
  thread.answersPings = false;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await failure).toMatchObject({ kind: 'not-open', message: expect.stringContaining('not answer') });
  expect(states.at(-1)).toMatchObject({ state: 'failed' });
});

test('a thread with nothing to do is asked nothing, however long the tab sleeps', async () => {
  const { thread, failure } = asked();
  const id = thread.received.findLast((message) => message.type === 'request')!.id;
  thread.say({ type: 'head', id, status: 200, contentType: 'application/json' });
  thread.say({ type: 'end', id });
  thread.answersPings = false;
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect([await failure, thread.received.filter(({ type }) => type === 'ping')]).toEqual([null, []]);
});

test('stopping the model ends its requests', async () => {
  const { end, failure } = asked();
  end();
  expect(await failure).toMatchObject({ kind: 'not-open' });
});

test('a thread that goes on with another device keeps its requests, and the page learns the reason', async () => {
  const { states, thread } = asked();
  const device = { kind: 'wasm', reason: 'WebGPU failed.' } as const;
  thread.say({ type: 'moved', device });
  expect(states.at(-1)).toMatchObject({ state: 'open', name: 'mini', device });
});
