import { askJson, useAccount } from '../../account/account.ts';
import type { ModelActivity, UpstreamActivity } from '../../account/api-objects.ts';
import { textColumn } from '../../account/columns.tsx';
import { clockText, count, milliseconds, minuteText } from '../../account/formats.ts';
import { useResource } from '../../account/resource.ts';
import { Empty, Loaded } from '../../account/states.tsx';
import { UsageChart } from '../../account/usage/usage-chart.tsx';
import { type Column, DataTable, numberColumn } from '../../controls/data-table.tsx';
import { firstTokenMs, lastMinutes, rates } from './activity.ts';

const READ_MS = 10_000;

interface Row extends ModelActivity {
  readonly model: string;
  readonly upstream: string;
  readonly rate: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

const perSecond = (rate: number): string =>
  `${rate.toLocaleString('en', { maximumFractionDigits: rate < 10 ? 1 : 0 })} tokens/s`;

/** What the origins do now, and the tokens and first tokens of their last hour. */
export function NowSection() {
  const account = useAccount();
  const activity = useResource(
    (signal) => askJson<{ data: readonly UpstreamActivity[] }>(account, '/admin/v1/activity', { signal }),
    '',
    READ_MS,
  );
  return (
    <>
      <h2>Now, and the last hour</h2>
      <Loaded of={activity}>{({ data }) => <Activity of={data} at={activity.at} />}</Loaded>
    </>
  );
}

interface ActivityProps {
  readonly of: readonly UpstreamActivity[];
  /** Server's Unix milliseconds of the answer. */
  readonly at: number;
}

function Activity({ of: upstreams, at }: ActivityProps) {
  const minutes = lastMinutes(at);
  const models = upstreams.flatMap((upstream) => upstream.models);
  const rows = upstreams.flatMap(({ id: upstream, bounds, models: served }) =>
    served.map((model): Row => {
      const rate = rates([model], minutes).at(-1)!;
      const [p50, p95] = [firstTokenMs(model, bounds, 0.5), firstTokenMs(model, bounds, 0.95)];
      return { ...model, id: `${upstream} ${model.id}`, model: model.id, upstream, rate, p50, p95 };
    }),
  );
  return (
    <>
      {upstreams.map(
        ({ id, fault }) =>
          fault !== null && (
            <p key={id} class="error-text" role="alert">
              <bdi>{id}</bdi> did not say what it does: {fault}
            </p>
          ),
      )}
      {rows.length === 0 ? (
        <Empty title="No figures">Only origins have them; the upstreams are other servers, or away.</Empty>
      ) : (
        <>
          <div class="panel">
            <UsageChart
              unit="Minute"
              labels={minutes.map(minuteText)}
              values={rates(models, minutes)}
              show={perSecond}
            />
          </div>
          <DataTable caption="Models" columns={COLUMNS} rows={rows} />
          <p class="quiet figures">
            As of {clockText(at)}. Tokens/s are those of the last whole minute, times to the first token those
            of the hour.
          </p>
        </>
      )}
    </>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  textColumn('Model', ({ model }) => model),
  { title: 'Upstream', of: ({ upstream }) => upstream },
  { title: 'State', of: ({ state }) => state },
  {
    title: 'Slots in use',
    of: ({ running }) => running,
    show: ({ running, slots }) => `${count(running)} of ${count(slots)}`,
    isNumber: true,
  },
  numberColumn('Queue', ({ waiting }) => waiting),
  numberColumn('Tokens/s', ({ rate }) => rate, perSecond),
  numberColumn('First token, median', ({ p50 }) => p50, milliseconds),
  numberColumn('95 %', ({ p95 }) => p95, milliseconds),
];
