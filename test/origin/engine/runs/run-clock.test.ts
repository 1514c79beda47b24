import { expect, it, vi } from 'vitest';
import { RunClock } from '../../../../origin/engine/runs/run-clock.ts';
import { TimeShares } from '../../../../origin/engine/scheduling/time-shares.ts';

it("a prompt's tenant pays the time of the card within a step, the others the rest, and none more than passed", () => {
  const shares = new TimeShares();
  const charge = vi.spyOn(shares, 'charge');
  let now = 100;
  const clock = new RunClock(shares, () => now);
  const rows = new Map([['streams', { rows: 2, size: 2, ownMs: 0 }]]);
  clock.begin(now);
  now += 7;
  clock.chargeBegun('prompts', 3);
  clock.chargeRun('decode', null, rows);
  now += 1;
  clock.chargeBegun('prompts', 5);
  clock.chargeRun('decode', null, rows);
  expect(charge.mock.calls.map(([kind, ms, parts]) => [kind, ms, ...parts.keys()])).toEqual([
    ['prefill', 3, 'prompts'],
    ['decode', 4, 'streams'],
    ['prefill', 1, 'prompts'],
    ['decode', 0, 'streams'],
  ]);
});
