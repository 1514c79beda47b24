import * as fc from 'fast-check';
import { beforeEach, expect, test, vi } from 'vitest';
import { afterAlone } from '../../../worker/timers/request-timers.ts';
import { SilenceTimer } from '../../../worker/timers/silence-timer.ts';

beforeEach(() => void vi.useFakeTimers());

/** A wait that may last `allowed` ms and lasts `lasts`, then a pause before the next one. */
const anyWait = fc.record({
  allowed: fc.integer({ min: 1, max: 100 }),
  lasts: fc.nat(200),
  pause: fc.nat(200),
});

test('calls back exactly when a wait has lasted too long, and never otherwise', () => {
  fc.assert(
    fc.property(fc.array(anyWait, { maxLength: 12 }), (waits) => {
      const told: number[] = [];
      const expected: number[] = [];
      const timer = new SilenceTimer(Date.now, afterAlone, () => told.push(Date.now()));
      for (const { allowed, lasts, pause } of waits) {
        if (lasts >= allowed) expected.push(Date.now() + allowed);
        timer.begin(allowed);
        vi.advanceTimersByTime(lasts);
        timer.end();
        vi.advanceTimersByTime(pause);
      }
      timer.begin(50);
      timer.stop();
      expect(vi.getTimerCount()).toBe(0);
      expect(told).toEqual(expected);
    }),
  );
});

test('many short waits set few timers', () => {
  const set = vi.fn(setTimeout);
  vi.stubGlobal('setTimeout', set);
  const timer = new SilenceTimer(Date.now, afterAlone, () => {});
  for (let count = 0; count < 1_000; count += 1) {
    timer.begin(10_000);
    vi.advanceTimersByTime(15);
    timer.end();
  }
  expect(set.mock.calls.length).toBeLessThanOrEqual(3);
  timer.stop();
});
