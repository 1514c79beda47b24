import { useMemo } from 'preact/hooks';
import type { WholeChoice } from '../api/whole-choices.ts';
import type { Sides } from './compare-state.ts';
import { logLikelihood } from './comparison.ts';
import { SIDE_NAMES } from './side-form.tsx';
import { decimal, type Histogram, histogram, summarize } from './statistics.ts';

/** With fewer samples, a distribution says nothing. */
const MIN_SAMPLES = 2;

interface Quantity {
  readonly title: string;
  readonly unit: string;
  readonly integers: boolean;
  readonly of: (sample: WholeChoice) => number | null;
}

const QUANTITIES: readonly Quantity[] = [
  { title: 'Length', unit: 'tokens', integers: true, of: ({ tokens }) => tokens.length },
  { title: 'Log-likelihood', unit: 'nats', integers: false, of: logLikelihood },
];

/** Histograms of the finished samples of both sides. */
export function Distributions({ sides }: { readonly sides: Sides<readonly WholeChoice[]> }) {
  const finished = sides.map((samples) => samples.filter(({ finishReason }) => finishReason !== null));
  if (finished.every(({ length }) => length < MIN_SAMPLES)) return null;
  return (
    <section aria-labelledby="distributions-heading">
      <h2 id="distributions-heading">All samples</h2>
      <div class="sides">
        {QUANTITIES.map((quantity) => (
          <Distribution
            key={quantity.title}
            quantity={quantity}
            series={finished.map((samples) => samples.map(quantity.of).filter((value) => value !== null))}
          />
        ))}
      </div>
    </section>
  );
}

interface DistributionProps {
  readonly quantity: Quantity;
  /** Values per side. */
  readonly series: readonly (readonly number[])[];
}

function Distribution({ quantity: { title, unit, integers }, series }: DistributionProps) {
  const bins = useMemo(() => histogram(series, integers), [series.flat().join(), integers]);
  return (
    <figure class="distribution">
      <figcaption>
        {title} <span class="quiet">in {unit}</span>
      </figcaption>
      {bins && <Bars bins={bins} label={`${title} in ${unit}`} />}
      <table class="figures">
        <thead>
          <tr>
            {['Side', 'Samples', 'Mean', 'Deviation', 'Median'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {series.map((values, index) => (
            <SummaryRow key={SIDE_NAMES[index]} name={SIDE_NAMES[index]!} values={values} />
          ))}
        </tbody>
      </table>
    </figure>
  );
}

const LABELS = 6;

/** Bars of both sides over the same bins: A filled, B outlined, so that colour is not needed. */
function Bars({ bins: { edges, counts }, label }: { readonly bins: Histogram; readonly label: string }) {
  const most = Math.max(...counts.flat());
  const step = Math.ceil(edges.length / LABELS);
  return (
    <div class="plot" role="img" aria-label={label}>
      {edges.map((edge, bin) => (
        <div key={edge} class="bin figures">
          {counts.map((list, side) => (
            <span
              key={SIDE_NAMES[side]}
              class={`bar ${SIDE_NAMES[side]}`}
              title={`${SIDE_NAMES[side]}: ${list[bin]}`}
              style={{ height: `${(100 * list[bin]!) / most}%` }}
            />
          ))}
          {bin % step === 0 && (
            <small class="quiet">{String(Number(edge.toFixed(2))).replace('-', '−')}</small>
          )}
        </div>
      ))}
    </div>
  );
}

function SummaryRow({ name, values }: { readonly name: string; readonly values: readonly number[] }) {
  const summary = summarize(values);
  const cells = summary ? [summary.mean, summary.deviation, summary.median] : [];
  return (
    <tr>
      <th scope="row">
        <span class={`side-mark ${name}`}>{name}</span>
      </th>
      <td>{values.length}</td>
      {[0, 1, 2].map((cell) => (
        <td key={cell}>{cells[cell] === undefined ? '–' : decimal(cells[cell])}</td>
      ))}
    </tr>
  );
}
