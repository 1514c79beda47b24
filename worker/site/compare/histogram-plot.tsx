import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { Histogram } from './statistics.ts';

export interface HistogramPlotProps {
  readonly bins: Histogram;
  /** Name for screen readers. */
  readonly label: string;
}

const HEIGHT = 180;
/** Part of a bin that its two bars fill, in one half each. */
const BAR = 0.42;

/** Bars of two series over the same bins: A filled, B outlined, so that colour is not needed. */
export function HistogramPlot({ bins, label }: HistogramPlotProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const target = element.current!;
    const plot = new uPlot(optionsFor(bins, target.clientWidth), dataOf(bins), target);
    const resized = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: HEIGHT }));
    resized.observe(target);
    // The colours depend on the theme.
    const rethemed = new MutationObserver(() => plot.redraw());
    rethemed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      rethemed.disconnect();
      plot.destroy();
    };
  }, [bins]);
  return <div ref={element} role="img" aria-label={label} />;
}

/** Steps of the axes: counts, tokens and nats are read as whole numbers. */
const INCREMENTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

const minusSigns = (_: uPlot, values: readonly number[]): string[] =>
  values.map((value) => String(value).replace('-', '−'));

const color = (name: string) => () => getComputedStyle(document.body).getPropertyValue(name);

const dataOf = ({ centers, counts }: Histogram): uPlot.AlignedData => [
  [...centers],
  // A bar of no height would be a line.
  ...counts.map((list) => list.map((count) => count || null)),
];

function optionsFor({ centers, width }: Histogram, pixels: number): uPlot.Options {
  const axis = {
    stroke: color('--grey'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  const bars = (align: -1 | 1) => uPlot.paths.bars!({ size: [BAR, 40], align });
  return {
    ...{ width: pixels, height: HEIGHT },
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [centers[0]! - width / 2, centers.at(-1)! + width / 2] },
      y: { range: (_, __, max) => [0, Math.max(1, max)] },
    },
    axes: [
      { ...axis, size: 28, grid: { show: false }, incrs: INCREMENTS, values: minusSigns },
      { ...axis, size: 36, incrs: INCREMENTS },
    ],
    series: [
      {},
      {
        label: 'A',
        paths: bars(-1),
        fill: color('--accent'),
        stroke: color('--accent'),
        points: { show: false },
      },
      { label: 'B', paths: bars(1), stroke: color('--ink'), width: 1.5, points: { show: false } },
    ],
  };
}
