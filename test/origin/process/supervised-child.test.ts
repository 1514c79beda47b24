import { Worker } from 'node:worker_threads';
import { beforeEach, expect, test, vi } from 'vitest';
import {
  type ChildExit,
  type ChildLife,
  type ChildOptions,
  SupervisedChild,
  threadLife,
} from '../../../origin/process/supervised-child.ts';
import { backOff } from '../../../shared/retry.ts';

const EXIT: ChildExit = { code: 1, signal: null, error: null };

/** A life that the test ends. */
class FakeLife implements ChildLife<string, string> {
  readonly calls: string[] = [];
  report: (report: string) => void = () => undefined;
  exit: (exit: ChildExit) => void = () => undefined;

  send = (command: string) => void this.calls.push(command);
  end = () => void this.calls.push('end');
  kill = () => void this.calls.push('kill');
  ref = () => void this.calls.push('ref');
  unref = () => void this.calls.push('unref');
  listen = (report: FakeLife['report'], exit: FakeLife['exit']) => {
    this.report = report;
    this.exit = exit;
  };
}

/** Returns a started child and its lives, which reply to a request with its id. */
function startFake(options: Partial<ChildOptions<string, string>> = {}) {
  const lives: FakeLife[] = [];
  const spawn = () => {
    lives.push(new FakeLife());
    return lives.at(-1)!;
  };
  const onReport = (id: string) => child.settle(id, 'reply');
  const child = new SupervisedChild<string, string, string>({ spawn, onReport, ...options });
  child.start();
  return { child, lives };
}

beforeEach(() => {
  vi.useFakeTimers();
});

test('resolves each request with its reply, in any order', async () => {
  const { child, lives } = startFake();
  const first = child.request('first', 'a');
  const second = child.request('second', 'b');
  lives[0]!.report('second');
  expect(await second).toBe('reply');
  expect([child.awaits('first'), child.awaits('second')]).toEqual([true, false]);
  lives[0]!.report('first');
  expect(await first).toBe('reply');
});

test('fails all open requests with one error if the child dies, and reports the loss first', async () => {
  const calls: unknown[] = [];
  const error = new Error('died');
  const { child, lives } = startFake({
    deathError: () => error,
    onLost: (lost) => calls.push(lost, child.awaits('a')),
    onDeath: (death) => {
      calls.push(death);
      return null;
    },
  });
  const requests = ['a', 'b'].map((id) => child.request(id, id));
  child.noteReady();
  const settled = Promise.allSettled(requests);
  lives[0]!.exit(EXIT);
  for (const outcome of await settled) expect(outcome).toEqual({ status: 'rejected', reason: error });
  expect(calls).toEqual([error, true, { ...EXIT, wasReady: true, deaths: 1 }]);
  expect(child.state).toBe('down');
  await vi.runAllTimersAsync();
  expect(lives).toHaveLength(1);
  expect(child.start()).toBe(true);
  expect(lives).toHaveLength(2);
});

test('restarts a child later with each death in a row, until it makes progress', async () => {
  const starts: number[] = [];
  const { child, lives } = startFake({
    onStart: () => starts.push(Date.now()),
    onDeath: ({ deaths }) => backOff(deaths, 100, 300),
  });
  for (let death = 0; death < 5; death++) {
    if (death === 4) child.noteProgress();
    lives.at(-1)!.exit(EXIT);
    await vi.runAllTimersAsync();
  }
  expect(starts.slice(1).map((start, i) => start - starts[i]!)).toEqual([100, 200, 300, 300, 100]);
});

test('a spawn that throws counts as a death', async () => {
  const errors: unknown[] = [];
  const child = new SupervisedChild({
    spawn: () => {
      throw new Error('no memory');
    },
    onDeath: ({ error, deaths }) => {
      errors.push(error?.message);
      return deaths < 2 ? 1 : null;
    },
  });
  expect(child.start()).toBe(false);
  await vi.runAllTimersAsync();
  expect(errors).toEqual(['no memory', 'no memory']);
});

test('a killed child takes no more requests, its late reports are ignored, and its end is a death', async () => {
  const onDeath = vi.fn(() => null);
  const onReport = vi.fn();
  const { child, lives } = startFake({ onDeath, onReport });
  const request = child.request('a', 'a');
  child.kill(new Error('too slow'));
  await expect(request).rejects.toThrow('too slow');
  lives[0]!.report('a');
  expect(onReport).not.toHaveBeenCalled();
  expect([child.start(), onDeath.mock.calls.length]).toEqual([false, 0]);
  lives[0]!.exit(EXIT);
  expect(onDeath).toHaveBeenCalledTimes(1);
});

test('a child that is closed while it starts is asked to end, then killed, and not started again', async () => {
  const onDeath = vi.fn(() => 0);
  const { child, lives } = startFake({ onDeath, graceMs: 500 });
  const request = child.request('a', 'a');
  let closed = false;
  const closing = child.close(new Error('closed')).then(() => {
    closed = true;
  });
  await expect(request).rejects.toThrow('closed');
  expect(lives[0]!.calls).toEqual(['ref', 'a', 'ref', 'end']);
  await vi.advanceTimersByTimeAsync(500);
  expect([lives[0]!.calls.at(-1), closed]).toEqual(['kill', false]);
  lives[0]!.exit(EXIT);
  await closing;
  await vi.runAllTimersAsync();
  expect([lives.length, onDeath.mock.calls.length]).toEqual([1, 0]);
});

test('a child that is closed before its restart is not started', async () => {
  const { child, lives } = startFake({ onDeath: () => 100 });
  lives[0]!.exit(EXIT);
  await child.close();
  await vi.runAllTimersAsync();
  expect(lives).toHaveLength(1);
});

test('a child in the background keeps this process alive only while a request is open', () => {
  const { child, lives } = startFake({ background: true });
  void child.request('a', 'a');
  void child.request('b', 'b');
  lives[0]!.report('a');
  expect(lives[0]!.calls).toEqual(['unref', 'ref', 'a', 'ref', 'b']);
  lives[0]!.report('b');
  expect(lives[0]!.calls.at(-1)).toBe('unref');
});

test('reports what a thread has thrown', async () => {
  const { promise, resolve } = Promise.withResolvers<ChildExit>();
  threadLife(new Worker('throw new TypeError("broken")', { eval: true })).listen(() => undefined, resolve);
  expect(await promise).toMatchObject({ code: 1, error: { name: 'TypeError', message: 'broken' } });
});
