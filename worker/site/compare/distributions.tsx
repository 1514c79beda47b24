import type { WholeChoice } from '../api/whole-choices.ts';
import { decimal } from '../tokens/probability.ts';
import type { Sides } from './compare-state.ts';
import { logLikelihood } from './comparison.ts';
import { SIDE_NAMES } from './side-form.tsx';
import { summarize } from './statistics.ts';

/** With fewer samples, a distribution says nothing. */
const MIN_SAMPLES = 2;

interface Quantity {
  readonly title: string;
  readonly unit: string;
  readonly of: (sample: WholeChoice) => number | null;
}

const QUANTITIES: readonly Quantity[] = [
  { title: 'Length', unit: 'tokens', of: ({ tokens }) => tokens.length },
  { title: 'Log-likelihood', unit: 'nats', of: logLikelihood },
];

/** Lengths and log-likelihoods of the finished samples of both sides. */
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

function Distribution({ quantity: { title, unit }, series }: DistributionProps) {
  return (
    <figure class="distribution framed">
      <figcaption>
        {title} <span class="quiet">in {unit}</span>
      </figcaption>
      <Marks series={series} label={`${title} in ${unit}`} />
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

/** One line per side, with a translucent mark per sample: where samples are dense, the line is dark. */
function Marks({ series, label }: Pick<DistributionProps, 'series'> & { readonly label: string }) {
  const values = series.flat();
  if (values.length === 0) return null;
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  const share = (value: number) => (greatest > least ? (value - least) / (greatest - least) : 0.5);
  return (
    <div class="plot quiet figures" role="img" aria-label={label}>
      {series.map((list, side) => (
        <div key={SIDE_NAMES[side]} class={`marks ${SIDE_NAMES[side]}`}>
          {list.map((value, index) => (
            <span key={index} title={decimal(value)} style={{ left: `${100 * share(value)}%` }} />
          ))}
        </div>
      ))}
      <small>{decimal(least)}</small> <small>{decimal(greatest)}</small>
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
