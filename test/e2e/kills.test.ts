import { expect, test } from 'vitest';
import { randomFrom } from '../support/random.ts';
import { killRepeatedly } from '../tools/chaos/kills.ts';

/** The short form of `npm run chaos kill-origin kill-workerd`. */

test.each([
  ['origin', 3],
  ['workerd', 2],
] as const)(
  'after kills of %s the ledger has what clients received, all slots are free and no answer ended falsely',
  async (victim, kills) => {
    const report = await killRepeatedly(victim, kills, randomFrom(2_311));
    expect(report).toMatchObject({ underbilled: 0, leakedSlots: 0, falseEnds: 0 });
  },
);
