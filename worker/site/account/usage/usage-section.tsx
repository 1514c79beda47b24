import { type Signal, useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { Segments } from '../../controls/segments.tsx';
import { saveFile, useAccount, useOwnKey } from '../account.ts';
import { type Column, DataTable } from '../data-table.tsx';
import { count, dayText, milliseconds, money } from '../formats.ts';
import { useAction, useResource } from '../resource.ts';
import { Empty, FormFault, Loaded } from '../states.tsx';
import { MEASURES, type MeasureName } from './measures.ts';
import { UsageChart } from './usage-chart.tsx';
import {
  daysIn,
  lastDays,
  loadUsage,
  MAX_ROWS,
  rangeFault,
  type Usage,
  type UsageFilter,
  type UsageGroup,
  type UsageRange,
  type UsageRow,
  usageCsv,
} from './usage-query.ts';

const GROUPS = [
  ['day', 'Day'],
  ['model', 'Model'],
  ['key', 'Key'],
  ['user', 'End user'],
] as const;
const PERIODS = ['7', '30', '90', '400'] as const;
const MEASURE_OPTIONS = (Object.keys(MEASURES) as MeasureName[]).map(
  (name) => [name, MEASURES[name].name] as const,
);

/** Usage and cost by day, model, key and end user. */
export function UsageSection() {
  const account = useAccount();
  const range = useSignal(lastDays(30, account.clock.now()));
  const group = useSignal<UsageGroup>('day');
  const filter = useSignal<UsageFilter>({});
  const fault = rangeFault(range.value);
  const asked = { range: range.value, filter: filter.value, group: group.value };
  return (
    <>
      <h2>Usage and cost</h2>
      <RangePicker range={range} />
      <FilterBar filter={filter} />
      {fault === null ? (
        <>
          <ByDay {...asked} />
          <div class="row spread">
            <Segments
              label="Group by"
              value={group.value}
              options={GROUPS}
              onChange={(chosen) => (group.value = chosen)}
            />
            <CsvButton {...asked} />
          </div>
          <ByGroup {...asked} filterBy={(next) => (filter.value = next)} />
        </>
      ) : (
        <p class="error-text" role="alert">
          {fault}
        </p>
      )}
    </>
  );
}

interface Asked {
  readonly range: UsageRange;
  readonly filter: UsageFilter;
  readonly group: UsageGroup;
}

function RangePicker({ range }: { readonly range: Signal<UsageRange> }) {
  const { clock } = useAccount();
  const { from, to } = range.value;
  const isPeriod = (days: string) => {
    const period = lastDays(Number(days), clock.now());
    return period.from === from && period.to === to;
  };
  const day = (name: 'from' | 'to', title: string) => (
    <label class="field labelled">
      <span>{title}</span>
      <input
        type="date"
        value={range.value[name]}
        onChange={(event) => (range.value = { ...range.value, [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="row range">
      <Segments
        label="Period"
        value={PERIODS.find(isPeriod) ?? ''}
        options={PERIODS.map((days) => [days, `${days} days`] as const)}
        onChange={(days) => (range.value = lastDays(Number(days), clock.now()))}
      />
      {day('from', 'From')}
      {day('to', 'to')}
    </div>
  );
}

/** A form, so that the page asks when a name is complete. */
function FilterBar({ filter }: { readonly filter: Signal<UsageFilter> }) {
  const name = useSignal('');
  const { user, ...others } = filter.value;
  const without = (what: keyof UsageFilter) => {
    const { [what]: _, ...rest } = filter.value;
    filter.value = rest;
  };
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        filter.value = name.value === '' ? others : { ...others, user: name.value };
      }}
    >
      <label class="field labelled grows">
        <span>End user</span>
        <input
          type="search"
          placeholder="name in the field user"
          value={name.value}
          onInput={(event) => (name.value = event.currentTarget.value)}
        />
      </label>
      <Button text="Apply" type="submit" />
      {(['model', 'key', 'user'] as const).map(
        (what) =>
          filter.value[what] !== undefined && (
            <button key={what} type="button" class="button chip" onClick={() => without(what)}>
              {what === 'user' ? 'End user' : what === 'key' ? 'Key' : 'Model'}{' '}
              <bdi>{filter.value[what]}</bdi>
              <span aria-hidden="true">✕</span>
              <span class="visually-hidden">: show all</span>
            </button>
          ),
      )}
    </form>
  );
}

/** The chart, with the sums of its days. */
function ByDay({ range, filter }: Asked) {
  const account = useAccount();
  const measure = useSignal<MeasureName>('tokens');
  const question = { range, filter, group: 'day' } as const;
  const usage = useResource(
    async (signal) => ({ ...(await loadUsage(account, question, signal)), range }),
    JSON.stringify(question),
  );
  const { of, show } = MEASURES[measure.value];
  return (
    <Loaded of={usage}>
      {({ data, total, range: loaded }) => {
        const values = new Map(data.map((row) => [row.day, of(row)]));
        const days = daysIn(loaded);
        return (
          <div class="panel" aria-busy={usage.isLoading}>
            <div class="row spread">
              <Totals of={total} />
              <Segments
                label="Measure"
                value={measure.value}
                options={MEASURE_OPTIONS}
                onChange={(chosen) => (measure.value = chosen)}
              />
            </div>
            <UsageChart days={days} values={days.map((day) => values.get(day) ?? 0)} show={show} />
          </div>
        );
      }}
    </Loaded>
  );
}

const Totals = ({ of }: { readonly of: Usage['total'] }) => (
  <dl class="totals figures">
    {(Object.keys(MEASURES) as MeasureName[]).map((name) => (
      <div key={name}>
        <dt>{MEASURES[name].name}</dt>
        <dd>{name === 'cost' ? money(of.cost_micros) : count(MEASURES[name].of(of))}</dd>
      </div>
    ))}
  </dl>
);

interface ByGroupProps extends Asked {
  readonly filterBy: (filter: UsageFilter) => void;
}

function ByGroup({ range, filter, group, filterBy }: ByGroupProps) {
  const account = useAccount();
  const question = { range, filter, group };
  const usage = useResource(
    async (signal) => ({ ...(await loadUsage(account, question, signal)), group }),
    JSON.stringify(question),
  );
  return (
    <Loaded of={usage}>
      {({ data, total, has_more, group: loaded }) =>
        data.length === 0 ? (
          <Empty title="No usage">
            {loaded === 'user'
              ? 'No request of these days names an end user in its field user.'
              : 'No request of these days has ended.'}
          </Empty>
        ) : (
          <>
            {has_more && (
              <p class="quiet">
                The first {count(MAX_ROWS)} groups are shown. The CSV has all; the sums count all.
              </p>
            )}
            <DataTable
              key={loaded}
              caption={`Usage by ${loaded}`}
              columns={columnsOf(loaded, (value) => filterBy({ ...filter, [loaded]: value }))}
              rows={data}
              idOf={(row) => row[loaded] ?? ''}
              sortedBy={loaded === 'day' ? 'Day' : 'Cost'}
              total={totalCells(total)}
            />
          </>
        )
      }
    </Loaded>
  );
}

const totalCells = (total: Usage['total']): string[] => [
  'Sum',
  count(total.requests),
  count(total.failed),
  count(total.prompt_tokens),
  count(total.cached_tokens),
  count(total.completion_tokens),
  money(total.cost_micros),
  '',
];

const number = (title: string, of: (row: UsageRow) => number): Column<UsageRow> => ({
  title,
  of,
  show: (row) => count(of(row)),
  isNumber: true,
});

/** Models and keys lead to their days. Of an end user, the server tells only the hash. */
function columnsOf(group: UsageGroup, choose: (value: string) => void): readonly Column<UsageRow>[] {
  const named = (row: UsageRow) => row[group] ?? '';
  const name: Column<UsageRow> = {
    title: GROUPS.find(([value]) => value === group)![1],
    of: named,
    show(row) {
      if (group === 'day') return dayText(named(row));
      if (group === 'user') return <code>{named(row)}</code>;
      return (
        <button type="button" class="link" onClick={() => choose(named(row))}>
          {group === 'key' ? <KeyName id={named(row)} /> : <bdi>{named(row)}</bdi>}
        </button>
      );
    },
  };
  return [
    name,
    number('Requests', ({ requests }) => requests),
    number('Failed', ({ failed }) => failed),
    number('Prompt tokens', ({ prompt_tokens }) => prompt_tokens),
    number('Cached', ({ cached_tokens }) => cached_tokens),
    number('Generated', ({ completion_tokens }) => completion_tokens),
    { ...number('Cost', ({ cost_micros }) => cost_micros), show: ({ cost_micros }) => money(cost_micros) },
    {
      title: 'First token',
      of: ({ mean_first_token_ms }) => mean_first_token_ms,
      show: ({ mean_first_token_ms }) => milliseconds(mean_first_token_ms),
      isNumber: true,
    },
  ];
}

function KeyName({ id }: { readonly id: string }) {
  const own = useOwnKey();
  return (
    <>
      {id === own.id && 'This key '}
      <code>{id}</code>
    </>
  );
}

/** Saves what the server writes: all days, all groups. */
function CsvButton(asked: Asked) {
  const account = useAccount();
  const { isBusy, failure, run } = useAction(async () => {
    const { from, to } = asked.range;
    saveFile(`usage-${from}-${to}-${asked.group}.csv`, await usageCsv(account, asked));
  });
  return (
    <>
      <Button text={isBusy ? 'Loading…' : 'Download CSV'} disabled={isBusy} onClick={run} />
      <FormFault failure={failure} />
    </>
  );
}
