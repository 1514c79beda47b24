import fc from 'fast-check';
import { expect } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import type { Driver } from './engine-driver.ts';
import { anySubmission } from './submissions.ts';
import { ordered, transcribe } from './transcript.ts';

/** A few requests at random times for engines of few slots; some are aborted. */
const arrival = fc.record({ submission: anySubmission(12), at: fc.nat(30), aborted: fc.nat(9) });
export const schedules = fc.array(arrival, { minLength: 4, maxLength: 9, size: 'max' });

type Schedule = typeof schedules extends fc.Arbitrary<infer S> ? S : never;

const outputOf = (driver: Driver, { requestId, choices }: Submission) =>
  ordered(transcribe(driver.eventsOf(requestId), choices));

/** Plays a schedule, and compares each request that was not aborted with itself alone in another engine. */
export async function expectAsAlone(schedule: Schedule, driver: Driver, alone: () => Driver): Promise<void> {
  const requests = schedule.map(({ submission }, index) => ({ ...submission, requestId: `${index}` }));
  for (let step = 0; step <= 40; step++) {
    for (const [index, { at, aborted }] of schedule.entries()) {
      if (at === step) driver.submit(requests[index]!);
      if (aborted === 0 && at + 8 === step) driver.engine.abort(`${index}`);
    }
    await driver.step();
  }
  await driver.finish();
  for (const [index, request] of requests.entries()) {
    if (schedule[index]!.aborted === 0) continue;
    const other = alone();
    other.submit({ ...request, flex: false });
    await other.finish();
    expect(outputOf(driver, request)).toEqual(outputOf(other, request));
  }
}
