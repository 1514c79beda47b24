import { beforeEach, expect, test, vi } from 'vitest';
import { startHeartbeat } from '../../../origin/http/event-stream.ts';

beforeEach(() => void vi.useFakeTimers());

test('a stream sends heartbeats while its engine reports, none while the engine hangs or after the end', () => {
  const engine = { status: { running: 1, waiting: 1, healthy: true } };
  let beats = 0;
  const rest = startHeartbeat({ beat: () => beats++ >= 0 }, engine, 15_000);
  const pass = (report: boolean) => {
    if (report) engine.status = { ...engine.status };
    vi.advanceTimersByTime(15_000);
    return beats;
  };
  expect([pass(true), pass(true), pass(false), pass(false), pass(true)]).toEqual([1, 2, 2, 2, 3]);
  rest();
  expect(pass(true)).toBe(3);
  expect(vi.getTimerCount()).toBe(0);
});
