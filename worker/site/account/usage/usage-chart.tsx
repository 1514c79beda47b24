import { useSignal } from '@preact/signals';
import type { TargetedPointerEvent } from 'preact';

interface UsageChartProps {
  /** What a column is, such as `Day`. */
  readonly unit: string;
  /** Names of the columns, such as their days. */
  readonly labels: readonly string[];
  /** One per column. */
  readonly values: readonly number[];
  readonly show: (value: number) => string;
}

/** Heights are shares of this; columns are one unit wide. */
const HEIGHT = 100;
/** From this number on, columns touch each other. */
const DENSE = 120;

/** Returns the least of 1, 2, 5 and their multiples by powers of ten that is at least `value`. */
export function niceMaximum(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((nice) => nice >= value) ?? 10 * power;
}

const KEYS: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowLeft: (at) => at - 1,
  ArrowDown: (at) => at - 1,
  ArrowRight: (at) => at + 1,
  ArrowUp: (at) => at + 1,
  PageDown: (at) => at - 7,
  PageUp: (at) => at + 7,
  Home: () => 0,
  End: (_, last) => last,
};

/** A column per day or minute. Hover over one or walk with the arrows: the line above has its figure. */
export function UsageChart({ unit, labels, values, show }: UsageChartProps) {
  const chosen = useSignal<number | null>(null);
  const last = labels.length - 1;
  const at = Math.min(chosen.value ?? last, last);
  const most = niceMaximum(Math.max(0, ...values));
  const shown = `${labels[at]}: ${show(values[at]!)}`;
  const choose = (next: number) => {
    chosen.value = Math.max(0, Math.min(last, next));
  };
  const point = ({ currentTarget, clientX }: TargetedPointerEvent<HTMLDivElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    choose(Math.floor(((clientX - left) / width) * labels.length));
  };
  return (
    <figure class="usage-chart figures">
      <figcaption>{shown}</figcaption>
      <div class="chart-area">
        <span class="quiet">{show(most)}</span>
        <div
          role="slider"
          tabIndex={0}
          aria-label={`${unit} of the chart`}
          aria-valuemin={0}
          aria-valuemax={last}
          aria-valuenow={at}
          aria-valuetext={shown}
          onKeyDown={(event) => {
            const step = KEYS[event.key];
            if (step === undefined) return;
            event.preventDefault();
            choose(step(at, last));
          }}
          // A finger does not move before it is down.
          onPointerDown={point}
          onPointerMove={point}
        >
          <Columns values={values} most={most} chosen={at} />
        </div>
        <div class="row spread quiet" aria-hidden="true">
          <span>{labels[0]}</span>
          <span>{labels[last]}</span>
        </div>
      </div>
    </figure>
  );
}

interface ColumnsProps {
  readonly values: readonly number[];
  readonly most: number;
  readonly chosen: number;
}

function Columns({ values, most, chosen }: ColumnsProps) {
  const width = values.length > DENSE ? 1 : 0.75;
  return (
    <svg viewBox={`0 0 ${values.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <rect class="chosen" x={chosen} y={0} width={1} height={HEIGHT} />
      {values.map((value, at) => {
        // One with any use is visible.
        const height = value === 0 ? 0 : Math.max(1, (value / most) * HEIGHT);
        return <rect key={at} x={at + (1 - width) / 2} y={HEIGHT - height} width={width} height={height} />;
      })}
    </svg>
  );
}
