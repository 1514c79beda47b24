import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SettlementRequest } from '../../../worker/env/limiter-protocol.ts';
import { SettlementQueue } from '../../../worker/limits/settlement-queue.ts';
import { runs } from '../../support/random.ts';

/** A manual clock. */
class Clock {
  #now = 0;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  get now(): number {
    return this.#now;
  }

  readonly pause = (ms: number): Promise<void> =>
    new Promise((wake) => this.#sleepers.push({ at: this.#now + ms, wake }));

  async pass(ms: number): Promise<void> {
    for (const end = this.#now + ms; this.#now < end; ) {
      this.#now += 1;
      const due = this.#sleepers.filter(({ at }) => at <= this.#now);
      this.#sleepers = this.#sleepers.filter(({ at }) => at > this.#now);
      for (const { wake } of due) wake();
      // Runs everything that follows within this millisecond.
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    }
  }
}

const settlement = (requestId: string): SettlementRequest => ({
  requestId,
  settlement: {
    status: 'completed',
    usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 1 },
    errorCode: null,
    finishReasons: [],
    upstream: null,
    latencyMs: 1,
    firstTokenMs: null,
  },
});

const ids = (settlements: readonly SettlementRequest[]) => settlements.map(({ requestId }) => requestId);

describe('the settlement queue', () => {
  test('sends settlements with the next reservation of the same tenant only', async () => {
    const clock = new Clock();
    const queue = new SettlementQueue({ pause: clock.pause, random: () => 0.5 });
    const alone: string[][] = [];
    const told = queue.deliver('acme', settlement('a'), async (all) => alone.push(ids(all)));
    expect(await queue.withWaiting('other', async (all) => ids(all))).toEqual([]);
    expect(await queue.withWaiting('acme', async (all) => ids(all))).toEqual(['a']);
    await clock.pass(2000);
    await told;
    expect(alone).toEqual([]);
  });

  test('sends settlements together without a reservation', async () => {
    const clock = new Clock();
    const queue = new SettlementQueue({ pause: clock.pause, random: () => 0.5 });
    const calls: string[][] = [];
    const send = async (all: readonly SettlementRequest[]) => calls.push(ids(all));
    const told = ['a', 'b', 'c'].map((id) => queue.deliver('acme', settlement(id), send));
    await clock.pass(20);
    await Promise.all(told);
    expect(calls).toEqual([['a', 'b', 'c']]);
  });

  test('sends settlements again when the carrying call dies', async () => {
    const clock = new Clock();
    const queue = new SettlementQueue({ pause: clock.pause, random: () => 0.5 });
    const calls: string[][] = [];
    const told = queue.deliver('acme', settlement('a'), async (all) => calls.push(ids(all)));
    void queue.withWaiting('acme', () => new Promise(() => {}));
    await clock.pass(1400);
    await told;
    expect(calls).toEqual([['a']]);
  });

  test('carries a settlement that was left, with the next reservations until one succeeds, and keeps at most 20', async () => {
    const clock = new Clock();
    const queue = new SettlementQueue({ pause: clock.pause, random: () => 0.5 });
    for (let index = 0; index < 30; index += 1) queue.leave('acme', settlement(`r${index}`));
    const lost = queue.withWaiting('acme', async () => Promise.reject(new Error('lost')));
    await expect(lost).rejects.toThrow('lost');
    expect(await queue.withWaiting('acme', async (all) => all.length)).toBe(20);
    expect(await queue.withWaiting('acme', async (all) => all.length)).toBe(0);
  });

  test('retries while a limiter restarts', async () => {
    const clock = new Clock();
    const queue = new SettlementQueue({ pause: clock.pause, random: () => 0.5 });
    const calls: string[][] = [];
    const told = queue.deliver('acme', settlement('a'), async (all) => {
      if (clock.now < 200) throw new Error('The limiter restarts.');
      calls.push(ids(all));
    });
    await clock.pass(1000);
    await told;
    expect(calls).toEqual([['a']]);
  });

  test('delivers every settlement unless three calls fail, and keeps none', async () => {
    const anyStep = fc.oneof(
      fc.record({ do: fc.constant('end' as const), fails: fc.array(fc.boolean(), { maxLength: 3 }) }),
      fc.record({
        do: fc.constant('reserve' as const),
        fate: fc.constantFrom('heard', 'failed', 'late', 'dead'),
      }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.nat(8) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
        const clock = new Clock();
        const queue = new SettlementQueue({ pause: clock.pause, random: () => 0.5 });
        const heard = new Set<string>();
        const hear = (all: readonly SettlementRequest[]) => {
          for (const { requestId } of all) heard.add(requestId);
        };
        const lost = new Map<string, number>();
        const lose = (all: readonly SettlementRequest[]) => {
          for (const { requestId } of all) lost.set(requestId, (lost.get(requestId) ?? 0) + 1);
        };
        const all: Promise<void>[] = [];
        for (const [at, step] of steps.entries()) {
          if (step.do === 'pass') await clock.pass(step.ms);
          else if (step.do === 'end') {
            const fails = [...step.fails];
            const send = async (settlements: readonly SettlementRequest[]) => {
              if (!fails.shift()) return hear(settlements);
              lose(settlements);
              throw new Error('lost');
            };
            all.push(queue.deliver('acme', settlement(`r${at}`), send));
          } else {
            const { fate } = step;
            const call = queue.withWaiting('acme', async (settlements) => {
              if (fate === 'heard') return hear(settlements);
              lose(settlements);
              if (fate === 'late') await clock.pause(3000);
              if (fate !== 'dead') throw new Error('lost');
              await new Promise(() => {});
            });
            const known = call.catch(() => {});
            if (fate === 'heard' || fate === 'failed') await known;
          }
        }
        await clock.pass(5000);
        await Promise.all(all);
        for (const [at, step] of steps.entries()) {
          const id = `r${at}`;
          if (step.do === 'end' && (lost.get(id) ?? 0) < 3) expect(heard).toContain(id);
        }
        expect(await queue.withWaiting('acme', async (settlements) => ids(settlements))).toEqual([]);
      }),
      { numRuns: runs(200) },
    );
  });
});
