import { expect, test } from 'vitest';
import { originActivity } from '../../../shared/activity.ts';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

test('GET /activity has the slots and queue of each model, to signed requests only', async () => {
  const activity = originActivity.parse(await (await origin.call('/activity')).json());
  expect(activity.models).toEqual([
    { id: 'tiny', state: 'loaded', running: 0, waiting: 0, slots: expect.any(Number), minutes: [] },
  ]);
  expect((await fetch(`${origin.url}/activity`)).status).toBe(401);
});
