import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Trace } from '../../../origin/cli/load.ts';
import { commonSpan, measureLoad, shareOfBare } from './load.ts';
import { linePlot } from './plot.ts';
import { failures } from './report.ts';
import { summary } from './shared-prefix.ts';
import { quantile } from './statistics.ts';
import type { Target } from './target.ts';

const trace = (events: number[], tokens = events.length): Trace => ({
  sent: 0,
  events,
  ended: events.at(-1) ?? 0,
  tokens,
  status: 200,
  error: null,
});

test('quantiles lie between the extremes, rise with q and meet the median of odd counts', () => {
  expect(quantile([3, 1, 2], 0.5)).toBe(2);
  expect(quantile([1, 2], 0.5)).toBe(1.5);
  const values = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1 });
  fc.assert(
    fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (list, q) => {
      expect(quantile(list, q)).toBeGreaterThanOrEqual(Math.min(...list));
      expect(quantile(list, q)).toBeLessThanOrEqual(Math.max(...list));
      expect(quantile(list, 0)).toBeLessThanOrEqual(quantile(list, q));
    }),
  );
});

test('counts only events in the span in which every stream was generating', () => {
  const wave = [trace([10, 20, 30, 40]), trace([15, 25, 35, 45])];
  // The span is 15 (start of the second) to 40 (end of the first): events 20, 30, 40 and 25, 35.
  // The depth rises from 1 to 3.5 tokens per stream.
  expect(commonSpan(wave)).toEqual({ tokens: 5, ms: 25, meanGenerated: 2.25 });
});

test('divides the tokens after the first evenly among the other events', () => {
  expect(commonSpan([trace([10, 20, 30], 7)])).toEqual({ tokens: 6, ms: 20, meanGenerated: 4 });
});

test('uses the token counts of the events if the target reports them', () => {
  const early = { ...trace([10, 20, 30, 40], 16), generated: [1, 2, 9, 16] };
  const late = { ...trace([20, 30, 40], 15), generated: [1, 8, 15] };
  expect(commonSpan([early, late])).toEqual({ tokens: 28, ms: 20, meanGenerated: 8.5 });
});

test('returns no span for streams that never overlap', () => {
  expect(commonSpan([trace([1, 2]), trace([3, 4])])).toEqual({ tokens: 0, ms: 0, meanGenerated: 0 });
  expect(commonSpan([trace([1, 2]), trace([])])).toEqual({ tokens: 0, ms: 0, meanGenerated: 0 });
});

test('a plot names every series and escapes what is not text', () => {
  const svg = linePlot('a < b', 'x', 'y', [
    {
      name: 'one & two',
      points: [
        [1, 10],
        [2, 20],
      ],
    },
  ]);
  expect(svg).toContain('a &lt; b');
  expect(svg).toContain('one &amp; two');
  expect(svg.match(/<circle/g)).toHaveLength(2);
});

test('a plot omits values that were not measured', () => {
  const points = [
    [1, Number.NaN],
    [2, 20],
  ] as const;
  const svg = linePlot('t', 'x', 'y', [{ name: 'one', points }]);
  expect(svg).not.toContain('NaN');
  expect(svg.match(/<circle/g)).toHaveLength(1);
});

test('counts failed requests and lists each reason once', async () => {
  const answers: Trace[] = [
    trace([1, 2]),
    { ...trace([]), status: 401 },
    { ...trace([]), status: 401 },
    { ...trace([1]), error: 'upstream_error' },
  ];
  const target: Target = { name: 'worker', run: async () => answers.pop()!, close: () => undefined };
  const job = () => ({ prompt: 'x', maxTokens: 2 });
  const load = await measureLoad(target, 4, 1, job, () => undefined);
  const measured = { ...load, bareTokensPerSecond: 1, shareOfBare: 1 };
  const told = failures([{ name: 'worker', loads: [measured] }]);
  expect(told).toEqual(['worker, 4: 3 of 4 requests failed: upstream_error; HTTP 401']);
  expect(failures([{ name: 'worker', loads: [{ ...measured, errors: 0 }] }])).toEqual([]);
});

test('the share of the bare loop is the median over waves, each relative to the loop before and after it', () => {
  expect(shareOfBare([90], [100, 100])).toBe(0.9);
  // After the first wave, the machine and with it the engine run at half the speed.
  expect(shareOfBare([90, 67.5, 45], [100, 100, 50, 50])).toBe(0.9);
  // The second wave stalled.
  expect(shareOfBare([90, 10, 95], [100, 100, 100, 100])).toBe(0.9);
  // In the second wave, no two streams overlapped.
  expect(shareOfBare([90, Number.NaN, 80], [100, 100, 100, 100])).toBeCloseTo(0.85);
});

test('compares runs with and without the prefix store round by round', () => {
  const round = (withStore: number, without: number, firstTokenMs: number) =>
    [withStore, without].map((tokensPerSecond) => [{ name: 'chat', tokensPerSecond, firstTokenMs }]);
  // The machine slows down by half in the second round.
  const { targets, gains } = summary(
    ['with', 'without'],
    [round(20, 10, 1), round(9, 5, 2), round(30, 10, 6)],
  );
  expect(gains).toEqual([2]);
  expect(targets[0]).toEqual({
    name: 'with',
    measured: [{ name: 'chat', tokensPerSecond: 20, firstTokenMs: 2 }],
  });
});
