import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VirtualTimes } from '../../shared/virtual-times.ts';

const TENANTS = ['a', 'b', 'c'];
const costs = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 100, maxLength: 100 });

describe('virtual times', () => {
  it.each([
    ['before the work', true],
    ['after it', false],
  ])(
    'give tenants that always have work equal costs, but for the largest, if they are charged %s',
    (_, before) => {
      fc.assert(
        fc.property(costs, (all) => {
          const times = new VirtualTimes();
          const had = new Map(TENANTS.map((tenant) => [tenant, 0]));
          for (const cost of all) {
            const next = times.first(TENANTS)!;
            times.serve(next, before ? cost : 0);
            if (!before) times.charge(next, cost);
            had.set(next, had.get(next)! + cost);
            expect(Math.max(...had.values()) - Math.min(...had.values())).toBeLessThanOrEqual(100);
          }
        }),
      );
    },
  );

  it('give tenants with equal costs their turns in order', () => {
    const times = new VirtualTimes();
    const turns = Array.from({ length: 6 }, () => {
      const next = times.first(['c', 'b', 'a'])!;
      times.serve(next, 1);
      return next;
    });
    expect(turns.join('')).toBe('cbacba');
    expect(times.first([])).toBeNull();
  });

  it('give no credit for the time in which a tenant had no work', () => {
    const times = new VirtualTimes();
    times.serve('idle', 1);
    for (let turn = 0; turn < 10; turn++) times.serve('busy', 1);
    times.begin('idle');
    expect(times.lead('idle')).toBe(0);
  });

  it('keep the lead of an idle tenant until `now` has reached it', () => {
    const times = new VirtualTimes();
    times.charge('early', 10);
    times.now = 9;
    times.forget();
    expect(times.lead('early')).toBe(1);
    times.now = 10;
    times.forget();
    times.now = 12;
    expect(times.lead('early')).toBe(0);
  });

  it('bound a lead', () => {
    const times = new VirtualTimes();
    times.charge('a', 10, 15);
    times.charge('a', 10, 15);
    expect(times.lead('a')).toBe(15);
  });

  it('settle to the nearest tenant: all gains, or all losses, are no debt', () => {
    for (const [now, nearest] of [
      [0, 2],
      [3, 3],
      [9, 5],
    ] as const) {
      const times = new VirtualTimes();
      times.charge('a', 2);
      times.charge('b', 5);
      times.now = now;
      times.settle();
      expect(times.now).toBe(nearest);
    }
  });
});
