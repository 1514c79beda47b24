import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FairMutex } from '../../origin/fair-mutex.ts';

type Move =
  | { readonly type: 'come'; readonly tenant: string; readonly fails: boolean; readonly gone: boolean }
  | { readonly type: 'leave'; readonly who: number; readonly ticks: number }
  | { readonly type: 'end' }
  | { readonly type: 'settle' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('come' as const),
      tenant: fc.constantFrom('a', 'b', 'c'),
      fails: fc.boolean(),
      gone: fc.nat(5).map((n) => n === 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('leave' as const), who: fc.nat(12), ticks: fc.nat(8) }),
  },
  { weight: 2, arbitrary: fc.constant({ type: 'end' as const }) },
  { weight: 1, arbitrary: fc.constant({ type: 'settle' as const }) },
);

/** Those who came, what became of them, and a way to end the work under way. */
class Crowd {
  readonly #mutex = new FairMutex();
  readonly callers: AbortController[] = [];
  readonly begun: number[] = [];
  /** Each caller's tenant, and how many had begun when it came. */
  readonly came: { readonly tenant: string; readonly begun: number }[] = [];
  readonly outcomes = new Map<number, string>();
  /** One under way at most, or the test fails. */
  readonly #working: (() => void)[] = [];

  come(tenantId: string, fails: boolean, gone: boolean): void {
    const who = this.callers.length;
    const caller = new AbortController();
    if (gone) caller.abort();
    this.callers.push(caller);
    this.came.push({ tenant: tenantId, begun: this.begun.length });
    const work = async () => {
      if (caller.signal.aborted || this.#working.length > 0) throw new Error('must not begin');
      this.begun.push(who);
      await new Promise<void>((resolve) => this.#working.push(resolve));
      if (fails) throw new Error('failed');
      return 'done';
    };
    this.#mutex.run({ tenantId, signal: caller.signal }, work).then(
      (result) => this.outcomes.set(who, result),
      (error) => this.outcomes.set(who, error === caller.signal.reason ? 'left' : error.message),
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
      const crowd = new Crowd();
      for (const made of moves) {
        if (made.type === 'come') crowd.come(made.tenant, made.fails, made.gone);
        else if (made.type === 'end') crowd.end();
        else if (made.type === 'settle') await setImmediate();
        else {
          // Also aborts while the mutex passes from one caller to the next.
          for (let tick = 0; tick < made.ticks; tick += 1) await Promise.resolve();
          crowd.callers[made.who]?.abort();
          await setImmediate();
          const known = made.who >= crowd.callers.length || crowd.begun.includes(made.who);
          if (!known) expect(crowd.outcomes.get(made.who)).toBe('left');
        }
      }
      await setImmediate();
      while (crowd.working) {
        crowd.end();
        await setImmediate();
      }
      for (const tenant of ['a', 'b', 'c']) {
        const own = crowd.begun.filter((who) => crowd.came[who]?.tenant === tenant);
        expect(own).toEqual(own.toSorted((a, b) => a - b));
        for (const [index, who] of own.entries()) {
          const waited = Math.max(crowd.came[who]!.begun, crowd.begun.indexOf(own[index - 1] ?? -1) + 1);
          const before = crowd.begun.slice(waited, crowd.begun.indexOf(who));
          const others = before.map((other) => crowd.came[other]!.tenant);
          expect(new Set(others).size).toBe(others.length);
        }
      }
      for (const [who, { signal }] of crowd.callers.entries()) {
        const outcomes = crowd.begun.includes(who) ? ['done', 'failed'] : ['left'];
        expect(outcomes).toContain(crowd.outcomes.get(who));
        if (!signal.aborted) expect(crowd.begun).toContain(who);
      }
    }),
  );
});
