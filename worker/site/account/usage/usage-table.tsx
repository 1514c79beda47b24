import { type Column, DataTable, numberColumn } from '../../controls/data-table.tsx';
import { useOwnKey } from '../account.ts';
import type { UsageRow } from '../api-objects.ts';
import { count, dayText, milliseconds, money } from '../formats.ts';
import { Empty, Loaded } from '../states.tsx';
import {
  MAX_ROWS,
  type Usage,
  type UsageFilter,
  type UsageGroup,
  type UsageQuestion,
  useUsage,
} from './usage-query.ts';

export const GROUPS = [
  ['day', 'Day'],
  ['model', 'Model'],
  ['key', 'Key'],
  ['user', 'End user'],
] as const;

interface ByGroupProps extends UsageQuestion {
  readonly filterBy: (filter: UsageFilter) => void;
}

/** Usage by day, model, key or end user as a table. */
export function ByGroup({ filterBy, ...question }: ByGroupProps) {
  const usage = useUsage(question);
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
            <DataTable<UsageRow>
              key={loaded}
              caption={`Usage by ${loaded}`}
              columns={columnsOf(loaded, (value) => filterBy({ ...question.filter, [loaded]: value }))}
              rows={data}
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
    numberColumn('Requests', ({ requests }) => requests),
    numberColumn('Failed', ({ failed }) => failed),
    numberColumn('Prompt tokens', ({ prompt_tokens }) => prompt_tokens),
    numberColumn('Cached', ({ cached_tokens }) => cached_tokens),
    numberColumn('Generated', ({ completion_tokens }) => completion_tokens),
    numberColumn('Cost', ({ cost_micros }) => cost_micros, money),
    numberColumn('First token', ({ mean_first_token_ms }) => mean_first_token_ms, milliseconds),
  ];
}

function KeyName({ id }: { readonly id: string }) {
  const ownKey = useOwnKey();
  return (
    <>
      {id === ownKey.id && 'This key '}
      <code>{id}</code>
    </>
  );
}
