import { expect, test } from 'vitest';
import { loadFigures, type Trace } from '../../../origin/cli/load.ts';

const trace = (events: readonly number[], tokens: number, more: Partial<Trace> = {}): Trace => ({
  sent: 100,
  events,
  ended: 999,
  tokens,
  status: 200,
  error: null,
  ...more,
});

test('figures of a load leave failed requests out, and count several tokens of one event', () => {
  const traces = [
    trace([110, 130, 170], 7),
    trace([120, 130], 2),
    trace([150], 1),
    trace([101], 5, { status: 503 }),
    trace([], 0, { error: 'upstream_error' }),
  ];
  const figures = loadFigures(traces, 500);
  expect(figures).toMatchObject({ requests: 5, errors: 2, reasons: ['HTTP 503', 'upstream_error'] });
  expect([figures.tokensPerSecond, figures.requestsPerSecond]).toEqual([20, 6]);
  expect(figures.timeToFirstToken.p50).toBe(20);
  expect(figures.perToken).toEqual({ p50: 10, p95: 10, p99: 10 });
  expect(figures.interToken.p50).toBe(20);
});
