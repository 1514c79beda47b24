import { type Signal, useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { saveFile } from '../../controls/save-file.ts';
import { Segments } from '../../controls/segments.tsx';
import { useAccount } from '../account.ts';
import { ActionButton } from '../form/action-button.tsx';
import { Field } from '../form/fields.tsx';
import { count, dayText, money } from '../formats.ts';
import { Pairs } from '../pairs-list.tsx';
import { useResource } from '../resource.ts';
import { Loaded } from '../states.tsx';
import { MEASURES, type MeasureName } from './measures.ts';
import { UsageChart } from './usage-chart.tsx';
import {
  daysIn,
  lastDays,
  loadUsage,
  rangeFault,
  type Usage,
  type UsageFilter,
  type UsageGroup,
  type UsageRange,
  usageCsv,
} from './usage-query.ts';
import { type Asked, ByGroup, GROUPS } from './usage-table.tsx';

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
      <Field
        grows
        title="End user"
        type="search"
        placeholder="name in the field user"
        value={name.value}
        onInput={(text) => (name.value = text)}
      />
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
            <UsageChart
              unit="Day"
              labels={days.map(dayText)}
              values={days.map((day) => values.get(day) ?? 0)}
              show={show}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

const Totals = ({ of }: { readonly of: Usage['total'] }) => (
  <Pairs
    class="totals"
    of={(Object.keys(MEASURES) as MeasureName[]).map((name) => [
      MEASURES[name].name,
      name === 'cost' ? money(of.cost_micros) : count(MEASURES[name].of(of)),
    ])}
  />
);

/** Saves what the server writes: all days, all groups. */
function CsvButton(asked: Asked) {
  const account = useAccount();
  const { from, to } = asked.range;
  const save = async () => saveFile(`usage-${from}-${to}-${asked.group}.csv`, await usageCsv(account, asked));
  return <ActionButton text="Download CSV" busyText="Loading…" onSend={save} />;
}
