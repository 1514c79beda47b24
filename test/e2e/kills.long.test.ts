import { expect, test } from 'vitest';
import { randomFrom } from '../support/random.ts';
import { killRepeatedly } from '../tools/chaos/kills.ts';

/** The short form of `npm run chaos kill-workerd`. */

test('after kills of workerd the ledger has what clients received, all slots are free and no answer ended falsely', async () => {
  const report = await killRepeatedly('workerd', 2, randomFrom(2_311));
  expect(report).toMatchObject({ underbilled: 0, leakedSlots: 0, falseEnds: 0 });
});
