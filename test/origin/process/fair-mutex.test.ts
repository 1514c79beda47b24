import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FairMutex } from '../../../origin/process/fair-mutex.ts';

type Move =
  | { readonly type: 'arrive'; readonly tenant: string; readonly fails: boolean; readonly aborted: boolean }
  | { readonly type: 'abort'; readonly who: number; readonly ticks: number }
  | { readonly type: 'end' }
  | { readonly type: 'settle' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('arrive' as const),
      tenant: fc.constantFrom('a', 'b', 'c'),
      fails: fc.boolean(),
      aborted: fc.nat(5).map((n) => n === 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('abort' as const), who: fc.nat(12), ticks: fc.nat(8) }),
  },
  { weight: 2, arbitrary: fc.constant({ type: 'end' as const }) },
  { weight: 1, arbitrary: fc.constant({ type: 'settle' as const }) },
);

/** The callers of one mutex, their outcomes, and a method that ends the running work. */
class Callers {
  readonly #mutex = new FairMutex();
  readonly callers: AbortController[] = [];
  readonly begun: number[] = [];
  /** Each caller's tenant, and how many callers had begun at its arrival. */
  readonly arrivals: { readonly tenant: string; readonly begun: number }[] = [];
  readonly outcomes = new Map<number, string>();
  /** Ends the running work. The test fails if two callers work at the same time. */
  readonly #working: (() => void)[] = [];

  arrive(tenantId: string, fails: boolean, aborted: boolean): void {
    const who = this.callers.length;
    const caller = new AbortController();
    if (aborted) caller.abort();
    this.callers.push(caller);
    this.arrivals.push({ tenant: tenantId, begun: this.begun.length });
    const work = async () => {
      if (caller.signal.aborted || this.#working.length > 0) throw new Error('must not begin');
      this.begun.push(who);
      await new Promise<void>((resolve) => this.#working.push(resolve));
      if (fails) throw new Error('failed');
      return 'done';
    };
    this.#mutex.run({ tenantId, signal: caller.signal }, work).then(
      (result) => this.outcomes.set(who, result),
      (error) => this.outcomes.set(who, error === caller.signal.reason ? 'aborted' : error.message),
    );
  }

  end(): void {
    this.#working.shift()?.();
  }

  get working(): boolean {
    return this.#working.length > 0;
  }
}

it('runs one caller at a time, tenants in turn and each in order of arrival, and drops an aborted caller at once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 40 }), async (moves) => {
      const crowd = new Callers();
      for (const made of moves) {
        if (made.type === 'arrive') crowd.arrive(made.tenant, made.fails, made.aborted);
        else if (made.type === 'end') crowd.end();
        else if (made.type === 'settle') await setImmediate();
        else {
          // Also aborts while the mutex passes from one caller to the next.
          for (let tick = 0; tick < made.ticks; tick += 1) await Promise.resolve();
          crowd.callers[made.who]?.abort();
          await setImmediate();
          const known = made.who >= crowd.callers.length || crowd.begun.includes(made.who);
          if (!known) expect(crowd.outcomes.get(made.who)).toBe('aborted');
        }
      }
      await setImmediate();
      while (crowd.working) {
        crowd.end();
        await setImmediate();
      }
      for (const tenant of ['a', 'b', 'c']) {
        const own = crowd.begun.filter((who) => crowd.arrivals[who]?.tenant === tenant);
        expect(own).toEqual(own.toSorted((a, b) => a - b));
        for (const [index, who] of own.entries()) {
          const waited = Math.max(crowd.arrivals[who]!.begun, crowd.begun.indexOf(own[index - 1] ?? -1) + 1);
          const before = crowd.begun.slice(waited, crowd.begun.indexOf(who));
          const others = before.map((other) => crowd.arrivals[other]!.tenant);
          expect(new Set(others).size).toBe(others.length);
        }
      }
      for (const [who, { signal }] of crowd.callers.entries()) {
        const outcomes = crowd.begun.includes(who) ? ['done', 'failed'] : ['aborted'];
        expect(outcomes).toContain(crowd.outcomes.get(who));
        if (!signal.aborted) expect(crowd.begun).toContain(who);
      }
    }),
  );
});

const { signal } = new AbortController();

it('gives tenants that always wait their weighted parts by the sizes of their work, but for the largest size', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 30, maxLength: 30 });
  const tenant = fc.record({ sizes, weight: fc.constantFrom(0.5, 1, 4) });
  await fc.assert(
    fc.asyncProperty(fc.array(tenant, { minLength: 3, maxLength: 3 }), async (tenants) => {
      const mutex = new FairMutex();
      const left = tenants.map(({ sizes }) => sizes.length);
      const had = tenants.map(() => 0);
      const largest = tenants.map(({ weight }) => 100 / weight);
      const calls = tenants.flatMap(({ sizes, weight }, index) =>
        sizes.map((size) => {
          const work = async () => {
            if (left.includes(0)) return;
            left[index]! -= 1;
            had[index]! += size / weight;
            const ahead = had.map((one, other) => one - largest[other]!);
            const behind = had.map((one, other) => one + largest[other]!);
            expect(Math.max(...ahead)).toBeLessThanOrEqual(Math.min(...behind) + 1e-6);
          };
          return mutex.run({ tenantId: `${index}`, weight, signal }, work, size);
        }),
      );
      await Promise.all(calls);
    }),
  );
});

it('gives a tenant nothing for the time in which it had no work', async () => {
  const mutex = new FairMutex();
  const order: string[] = [];
  const late: Promise<void>[] = [];
  const call = async (tenantId: string): Promise<void> => {
    const work = async () => {
      order.push(tenantId);
      if (order.length === 3) late.push(...['b', 'b', 'b'].map(call));
    };
    await mutex.run({ tenantId, signal }, work, 10);
  };
  await Promise.all(['a', 'a', 'a', 'a', 'a', 'a'].map(call));
  await Promise.all(late);
  expect(order.join('')).toBe('aaabababa');
});
