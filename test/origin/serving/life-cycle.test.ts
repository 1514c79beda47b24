import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LifeCycle } from '../../../origin/serving/life-cycle.ts';
import { runs } from '../../support/random.ts';
import { LifeWorld } from './life-world.ts';

/** Random lives: requests, aborts, load failures, idle times and reloads in any order. */

const NAMES = ['a', 'b', 'c'];

/** Any three of these sizes fit into either memory, but not always together with their replacements. */
const terms = fc.record({
  version: fc.nat(2),
  loadAtStart: fc.boolean(),
  idleMs: fc.option(fc.integer({ min: 1, max: 50 })),
});
const configuration = fc.tuple(...NAMES.map(() => fc.option(terms)));

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('request' as const), name: fc.constantFrom(...NAMES) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      which: fc.nat(),
      outcome: fc.constantFrom('done', 'done', 'done', 'fails', 'fails for good'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 3000 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('configure' as const), models: configuration }) },
);

type Terms = typeof terms extends fc.Arbitrary<infer T> ? T : never;

const plan = (models: readonly (Terms | null)[]) =>
  models.flatMap((model, index) => {
    if (model === null) return [];
    const { version, ...rest } = model;
    // The version decides size and memory, so that equal keys are equal engines.
    const bytes = ((version + index) % 4) + 1;
    const memory = version === 2 ? 'card' : 'main';
    return [{ ...rest, bytes, memory, name: NAMES[index]!, key: `${version}`, expectedLoadMs: 100 }];
  });

describe('the life cycle of engines under random events', () => {
  test('only loaded engines serve, none is loaded twice or unloaded in use, and memory limits hold', () => {
    const seen = { served: 0, failed: 0, unloads: 0, replaced: 0, waited: 0 };
    fc.assert(
      fc.property(
        configuration,
        fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }),
        (first, steps) => {
          const world = new LifeWorld({ main: 12, card: 11 });
          world.configure(plan(first));
          for (const one of steps) {
            if (one.do === 'request') world.request(one.name);
            else if (one.do === 'release') world.release(one.which);
            else if (one.do === 'answer') world.answer(one.which, one.outcome);
            else if (one.do === 'wait') world.wait(one.ms);
            else world.configure(plan(one.models));
            world.check();
          }
          world.settle();
          for (const name of world.configured) {
            world.serveEventually(name);
          }
          for (const key of Object.keys(seen) as (keyof typeof seen)[]) seen[key] += world.seen[key];
        },
      ),
      { numRuns: runs(400) },
    );
    // The walk reaches everything it is about.
    for (const [what, count] of Object.entries(seen)) expect([what, count > runs(100)]).toEqual([what, true]);
  });
});

describe('one engine', () => {
  const model = {
    name: 'a',
    key: '1',
    memory: 'cpu',
    bytes: 1,
    loadAtStart: false,
    idleMs: 500,
    expectedLoadMs: 3000,
  };
  const begun = () => {
    const life = new LifeCycle({ load: () => undefined, unload: () => undefined });
    life.configure([model], () => Infinity, 0);
    return life;
  };

  test('stays loaded until refused clients have had time to retry', () => {
    const life = begun();
    expect(life.request('a', 0)).toEqual({ type: 'loading', retryAfterMs: 3000 });
    life.loaded(1, 100);
    expect(life.nextExpiry).toBe(3500);
    expect(life.request('a', 3000)).toEqual({ type: 'serve', engine: 1 });
    life.release(1, 4000);
    expect(life.nextExpiry).toBe(4500);
  });

  test('is loaded again after unloading if a request needs it meanwhile', () => {
    const done: string[] = [];
    const life = new LifeCycle({ load: () => done.push('load'), unload: () => done.push('unload') });
    life.configure([model], () => Infinity, 0);
    life.request('a', 0);
    life.loaded(1, 0);
    life.expire(10_000);
    expect(life.request('a', 10_000).type).toBe('loading');
    expect(done).toEqual(['load', 'unload']);
    life.unloaded(1, 10_100);
    expect(done).toEqual(['load', 'unload', 'load']);
  });

  test('reports the measured remaining time, and more when overdue', () => {
    const life = begun();
    life.request('a', 0);
    expect(life.request('a', 1000)).toEqual({ type: 'loading', retryAfterMs: 2000 });
    expect(life.request('a', 8000)).toEqual({ type: 'loading', retryAfterMs: 2000 });
    life.loaded(1, 10_000);
    life.expire(20_000);
    life.unloaded(1, 20_000);
    expect(life.request('a', 20_000)).toEqual({ type: 'loading', retryAfterMs: 15_000 });
  });

  test('is retried after a failure with growing delays, and never if the model is faulty', () => {
    const life = begun();
    const failAt = (now: number, permanent: boolean) => {
      expect(life.request('a', now).type).toBe('loading');
      life.loadFailed(1, { permanent }, now);
    };
    failAt(0, false);
    expect(life.request('a', 1500)).toEqual({ type: 'failed', retryAfterMs: 500 });
    failAt(2000, false);
    expect(life.request('a', 2000)).toEqual({ type: 'failed', retryAfterMs: 4000 });
    failAt(6000, true);
    expect(life.request('a', 1e12)).toEqual({ type: 'failed', retryAfterMs: null });
    life.configure([model], () => Infinity, 1e12);
    expect(life.request('a', 1e12).type).toBe('loading');
  });
});

test('an engine that waits for a card does not block main memory', () => {
  const loads: number[] = [];
  const life = new LifeCycle({ load: (engine) => loads.push(engine), unload: () => undefined });
  const rest = { bytes: 1, loadAtStart: false, idleMs: null, expectedLoadMs: 3000 };
  const card = { ...rest, name: 'card', memory: 'card' };
  const main = { ...rest, name: 'main', key: '1', memory: 'main' };
  const limitOf = () => 1;
  life.configure([{ ...card, key: '1' }, main], limitOf, 0);
  life.request('card', 0);
  life.loaded(1, 0);
  life.request('card', 0);
  // The old engine still serves a request.
  life.configure([{ ...card, key: '2' }, main], limitOf, 10);
  expect(life.request('card', 10).type).toBe('loading');
  expect(loads).toEqual([1]);
  life.request('main', 10);
  expect(loads).toEqual([1, 2]);
  life.release(1, 20);
  life.unloaded(1, 30);
  expect(loads).toEqual([1, 2, 3]);
});
