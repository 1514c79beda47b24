import { expect, test } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { TEST_SEED } from '../../support/random.ts';
import { fuzz } from './fuzz.ts';
import { startTinySystem } from './system.ts';

const system = forAllTests(startTinySystem);

test('random requests get no server error, leak nothing and leave no prompt in a log', async () => {
  const { violations, statuses } = await fuzz(system, { count: 400, seed: TEST_SEED });
  expect(violations).toEqual([]);
  expect(statuses['200']).toBeGreaterThan(20);
});
