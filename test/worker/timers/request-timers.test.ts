import * as fc from 'fast-check';
import { beforeEach, expect, test, vi } from 'vitest';
import { RequestTimers } from '../../../worker/timers/request-timers.ts';

beforeEach(() => void vi.useFakeTimers());

/** A wait that begins `pause` ms after the one before, and is lifted after `lasts`. */
const anyWait = fc.record({
  pause: fc.nat(3_000),
  allowed: fc.integer({ min: 1, max: 20_000 }),
  lasts: fc.nat(20_000),
});

test('runs every callback that is not cancelled at its time, and no other', () => {
  fc.assert(
    fc.property(fc.array(anyWait, { maxLength: 12 }), (waits) => {
      const ended: string[] = [];
      const expected: string[] = [];
      const { after } = new RequestTimers(Date.now);
      for (const [index, { pause, allowed, lasts }] of waits.entries()) {
        vi.advanceTimersByTime(pause);
        const lift = after(allowed, () => ended.push(`${index} at ${Date.now()}`));
        if (lasts >= allowed) expected.push(`${index} at ${Date.now() + allowed}`);
        else setTimeout(lift, lasts);
      }
      vi.advanceTimersByTime(30_000);
      expect(ended.toSorted()).toEqual(expected.toSorted());
      expect(vi.getTimerCount()).toBe(0);
    }),
  );
});

test('does not run a callback that another one cancels at the same time', () => {
  const { after } = new RequestTimers(Date.now);
  const second = vi.fn();
  let lift = (): void => {};
  after(10, () => lift());
  lift = after(10, second);
  vi.advanceTimersByTime(100);
  expect(second).not.toHaveBeenCalled();
});

test('many short waits set few platform timers', () => {
  const set = vi.fn(setTimeout);
  vi.stubGlobal('setTimeout', set);
  const { after } = new RequestTimers(Date.now);
  for (let count = 0; count < 1_000; count += 1) {
    const lift = after(10_000, () => {});
    vi.advanceTimersByTime(15);
    lift();
  }
  expect(set.mock.calls.length).toBeLessThanOrEqual(4);
});
