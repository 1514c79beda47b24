import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bodyBudget, type HeldBody } from '../../../worker/http/body-budget.ts';

describe('the bytes of bodies that an isolate holds', () => {
  test('never exceed the limit, fit again once released, and leave room for other tenants', () => {
    const bodies = fc.array(
      fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), bytes: fc.integer({ min: 1, max: 40 }) }),
      { maxLength: 60, size: 'max' },
    );
    fc.assert(
      fc.property(bodies, fc.nat(), (all, seed) => {
        const limit = 200;
        const newBody = bodyBudget(limit);
        const held: { body: HeldBody; tenant: string; bytes: number }[] = [];
        const sum = (of: typeof held) => of.reduce((total, { bytes }) => total + bytes, 0);
        for (const [index, { tenant, bytes }] of all.entries()) {
          const body = newBody();
          const own = sum(held.filter((other) => other.tenant === tenant));
          const fits = own <= limit - sum(held) - bytes;
          if (fits) body.take(tenant, bytes);
          else expect(() => body.take(tenant, bytes)).toThrow('Too many large request bodies');
          if (fits) held.push({ body, tenant, bytes });
          expect(sum(held)).toBeLessThanOrEqual(limit);
          if ((index + seed) % 3 === 0) held.shift()?.body.release();
        }
        for (const { body } of held) body.release();
        expect(() => newBody().take('a', limit)).not.toThrow();
      }),
    );
  });

  test('of one tenant are at most about half, and a body that grows counts as it grows', () => {
    const newBody = bodyBudget(100);
    const growing = newBody();
    for (let piece = 0; piece < 5; piece++) growing.take('a', 10);
    expect(() => growing.take('a', 10)).toThrow();
    newBody().take('b', 20);
    growing.release();
    growing.release();
    expect(() => newBody().take('c', 81)).toThrow();
    expect(() => newBody().take('c', 80)).not.toThrow();
  });
});
