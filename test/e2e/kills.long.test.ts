import { expect, test } from 'vitest';
import { randomFrom } from '../support/random.ts';
import { killRepeatedly } from '../tools/chaos/kills.ts';

/** The short form of `npm run chaos kill-workerd`. */

test('after kills of workerd the ledger has what clients received at one cost everywhere, all slots are free and no answer ended falsely', async () => {
  const report = await killRepeatedly('workerd', 2, randomFrom(2_311));
  expect(report).toMatchObject({ underbilled: 0, wrongMoney: 0, leakedSlots: 0, falseEnds: 0 });
  expect(report.cost).toBeGreaterThan(0);
});
