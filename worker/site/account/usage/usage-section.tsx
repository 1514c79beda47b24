import { type Signal, useSignal } from '@preact/signals';
import { Fault } from '../../controls/fault.tsx';
import { Pairs } from '../../controls/pairs.tsx';
import { saveFile } from '../../controls/save-file.ts';
import { Segments } from '../../controls/segments.tsx';
import { useAccount } from '../account.ts';
import { Field } from '../form/fields.tsx';
import { ActionButton, Form } from '../form/form.tsx';
import type { FormField } from '../form/form-fields.ts';
import { count, dayText, money } from '../formats.ts';
import { Loaded } from '../states.tsx';
import { UsageChart } from './usage-chart.tsx';
import {
  daysIn,
  lastDays,
  rangeFault,
  type Usage,
  type UsageFilter,
  type UsageGroup,
  type UsageQuestion,
  type UsageRange,
  type UsageSums,
  usageCsv,
  useUsage,
} from './usage-query.ts';
import { ByGroup, GROUPS } from './usage-table.tsx';

/** What the chart draws, with its form in words. */
const MEASURES = {
  tokens: {
    name: 'Tokens',
    of: ({ prompt_tokens, completion_tokens }: UsageSums) => prompt_tokens + completion_tokens,
    show: (value: number) => `${count(value)} tokens`,
  },
  cost: {
    name: 'Cost',
    of: ({ cost_micros }: UsageSums) => cost_micros,
    show: (value: number) => `cost ${money(value)}`,
  },
  requests: {
    name: 'Requests',
    of: ({ requests }: UsageSums) => requests,
    show: (value: number) => `${count(value)} requests`,
  },
} as const;
type MeasureName = keyof typeof MEASURES;
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
        <Fault text={fault} />
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
  const day = (name: 'from' | 'to') => ({
    type: 'date' as const,
    value: range.value[name],
    onInput: (text: string) => (range.value = { ...range.value, [name]: text }),
  });
  return (
    <div class="row range">
      <Segments
        label="Period"
        value={PERIODS.find(isPeriod) ?? ''}
        options={PERIODS.map((days) => [days, `${days} days`] as const)}
        onChange={(days) => (range.value = lastDays(Number(days), clock.now()))}
      />
      <Field title="From" {...day('from')} />
      <Field title="to" {...day('to')} />
    </div>
  );
}

const FILTERS = { model: 'Model', key: 'Key', user: 'End user' } as const;
const END_USER: FormField = {
  name: 'user',
  title: FILTERS.user,
  kind: 'search',
  input: { grows: true, placeholder: 'name in the field user' },
};

/** A form, so that the page asks when a name is complete. */
function FilterBar({ filter }: { readonly filter: Signal<UsageFilter> }) {
  const without = (what: keyof UsageFilter) => {
    const { [what]: _, ...rest } = filter.peek();
    return rest;
  };
  const chosen = (Object.keys(FILTERS) as (keyof UsageFilter)[]).filter((what) => what in filter.value);
  return (
    <div class="row">
      <Form
        isRow
        action="Apply"
        partsOf={() => [END_USER]}
        onSend={async (_, { user }) => void (filter.value = { ...without('user'), ...(user && { user }) })}
      />
      {chosen.map((what) => (
        <button key={what} type="button" class="button chip" onClick={() => (filter.value = without(what))}>
          {FILTERS[what]} <bdi class="clipped">{filter.value[what]}</bdi>
          <span aria-hidden="true">✕</span>
          <span class="visually-hidden">: show all</span>
        </button>
      ))}
    </div>
  );
}

/** The chart, with the sums of its days. */
function ByDay({ range, filter }: UsageQuestion) {
  const measure = useSignal<MeasureName>('tokens');
  const usage = useUsage({ range, filter, group: 'day' });
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
function CsvButton(asked: UsageQuestion) {
  const account = useAccount();
  const { from, to } = asked.range;
  const save = async () => saveFile(`usage-${from}-${to}-${asked.group}.csv`, await usageCsv(account, asked));
  return <ActionButton text="Download CSV" busyText="Loading…" onSend={save} />;
}
