import { useAccount } from '../../account/account.ts';
import { textColumn } from '../../account/columns.tsx';
import type { FormField } from '../../account/form/form-fields.ts';
import { dateText, money } from '../../account/formats.ts';
import { Records } from '../../account/records.tsx';
import { useList } from '../../account/resource.ts';
import { type Column, numberColumn } from '../../controls/data-table.tsx';
import { useRights } from '../rights.ts';

/** A price of a model from a time on, in micro-units per million tokens. */
interface PriceObject {
  readonly id: string;
  readonly model: string;
  readonly prompt_micros: number;
  readonly cached_prompt_micros: number;
  readonly completion_micros: number;
  readonly flex_permille: number;
  readonly batch_permille: number;
  /** Unix seconds. */
  readonly valid_from: number;
}

const PATH = '/admin/v1/prices';

/** The prices of all models, with those that were and will be. */
export function PricesSection() {
  const account = useAccount();
  const { bills } = useRights();
  const prices = useList<PriceObject>(PATH);
  return (
    <Records
      title="Prices"
      noun="price"
      path={PATH}
      intro="In units of the currency per million tokens. Requests keep the price of their time."
      of={prices}
      create={bills ? 'Set a price' : null}
      columnsOf={(_, all) => columnsOf(currentOf(all, account.clock.now() / 1000))}
      sortedBy="From"
      search={{
        textsOf: ({ model }) => [model],
        hint: 'model',
        empty: ['No model has a price, so nothing costs anything.', 'No model is like this.'],
      }}
      partsOf={() => () => priceFields([...new Set(prices.value?.map(({ model }) => model))])}
    />
  );
}

/** Returns the price in effect of each model: the last one that has begun. @param now Unix seconds */
function currentOf(
  prices: readonly PriceObject[],
  now: number,
): (price: PriceObject) => 'in effect' | 'future' | 'past' {
  const current = new Map<string, PriceObject>();
  for (const price of prices) {
    const latest = current.get(price.model);
    // Of two with one time, the later version counts.
    if (price.valid_from <= now && (latest === undefined || latest.valid_from <= price.valid_from))
      current.set(price.model, price);
  }
  return (price) => {
    if (price.valid_from > now) return 'future';
    return current.get(price.model) === price ? 'in effect' : 'past';
  };
}

const columnsOf = (stateOf: (price: PriceObject) => string): readonly Column<PriceObject>[] => {
  const percent = (permille: number) => `${permille / 10} %`;
  return [
    textColumn('Model', ({ model }) => model),
    {
      title: 'State',
      of: stateOf,
      show: (price) => (
        <span class={`key-badge ${stateOf(price) === 'past' ? 'ended' : ''}`}>{stateOf(price)}</span>
      ),
    },
    { title: 'From', of: ({ valid_from }) => valid_from, show: ({ valid_from }) => dateText(valid_from) },
    numberColumn('Prompt', ({ prompt_micros }) => prompt_micros, money),
    numberColumn('Cached', ({ cached_prompt_micros }) => cached_prompt_micros, money),
    numberColumn('Generated', ({ completion_micros }) => completion_micros, money),
    numberColumn('Flex', ({ flex_permille }) => flex_permille, percent),
    numberColumn('Batches', ({ batch_permille }) => batch_permille, percent),
    { title: 'Version', of: ({ id }) => Number(id), isNumber: true },
  ];
};

/** The fields of a new price; of those that are empty, the server has defaults. */
function priceFields(models: readonly string[]): readonly FormField[] {
  const amount = { kind: 'money', input: { required: true, min: 0 } } as const;
  const share = { kind: 'percent', hint: '% of the price', initial: '100', input: amount.input } as const;
  return [
    {
      name: 'model',
      title: 'Model',
      hint: 'its id, not an alias',
      suggested: models,
      input: { required: true },
    },
    { name: 'prompt_micros', title: 'Prompt', hint: 'per million tokens', ...amount },
    {
      name: 'cached_prompt_micros',
      title: 'Cached prompt',
      hint: 'empty = that of the prompt',
      kind: 'money',
      input: { min: 0 },
    },
    { name: 'completion_micros', title: 'Generated', hint: 'per million tokens', ...amount },
    { name: 'flex_permille', title: 'Flex', ...share },
    { name: 'batch_permille', title: 'Batches', ...share },
    { name: 'valid_from', title: 'From', hint: 'UTC; empty = now', kind: 'time' },
  ];
}
