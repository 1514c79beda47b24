import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Turns } from '../../../origin/turns.ts';

type Move =
  | { readonly type: 'come'; readonly fails: boolean; readonly gone: boolean }
  | { readonly type: 'leave'; readonly who: number; readonly ticks: number }
  | { readonly type: 'end' }
  | { readonly type: 'settle' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('come' as const),
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
  readonly #turns = new Turns();
  readonly callers: AbortController[] = [];
  readonly begun: number[] = [];
  readonly outcomes = new Map<number, string>();
  /** One under way at most, or the test fails. */
  readonly #working: (() => void)[] = [];

  come(fails: boolean, gone: boolean): void {
    const who = this.callers.length;
    const caller = new AbortController();
    if (gone) caller.abort();
    this.callers.push(caller);
    const work = async () => {
      if (caller.signal.aborted || this.#working.length > 0) throw new Error('must not begin');
      this.begun.push(who);
      await new Promise<void>((resolve) => this.#working.push(resolve));
      if (fails) throw new Error('failed');
      return 'done';
    };
    this.#turns.take(work, caller.signal).then(
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

it('one works at a time, in order of arrival; who leaves while waiting is gone at once and costs no turn', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 40 }), async (moves) => {
      const crowd = new Crowd();
      for (const made of moves) {
        if (made.type === 'come') crowd.come(made.fails, made.gone);
        else if (made.type === 'end') crowd.end();
        else if (made.type === 'settle') await setImmediate();
        else {
          // In the middle of a turn's handing over, too.
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
      expect(crowd.begun).toEqual(crowd.begun.toSorted((a, b) => a - b));
      for (const [who, { signal }] of crowd.callers.entries()) {
        const outcomes = crowd.begun.includes(who) ? ['done', 'failed'] : ['left'];
        expect(outcomes).toContain(crowd.outcomes.get(who));
        if (!signal.aborted) expect(crowd.begun).toContain(who);
      }
    }),
  );
});
