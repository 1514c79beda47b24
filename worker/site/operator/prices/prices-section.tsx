import { askAll, useAccount } from '../../account/account.ts';
import { numberColumn, textColumn } from '../../account/columns.tsx';
import type { Column } from '../../account/data-table.tsx';
import { useDraft } from '../../account/form/draft.ts';
import { Field } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { dateText, microsOf, money } from '../../account/formats.ts';
import { Records } from '../../account/records.tsx';
import { useResource } from '../../account/resource.ts';
import { Dialog } from '../../controls/dialog.tsx';
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

/** The prices of all models, with those that were and will be. */
export function PricesSection() {
  const account = useAccount();
  const { bills } = useRights();
  const prices = useResource((signal) => askAll<PriceObject>(account, '/admin/v1/prices', signal), '');
  return (
    <Records
      title="Prices"
      about="In units of the currency per million tokens. Requests keep the price of their time."
      of={prices}
      create={bills ? 'Set a price' : null}
      columnsOf={(_, all) => columnsOf(currentOf(all, account.clock.now() / 1000))}
      sortedBy="From"
      search={{
        textsOf: ({ model }) => [model],
        hint: 'model',
        empty: ['No model has a price, so nothing costs anything.', 'No model is like this.'],
      }}
      dialog={({ onDone }) => (
        <SetPrice models={[...new Set((prices.value ?? []).map(({ model }) => model))]} onDone={onDone} />
      )}
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
    const known = current.get(price.model);
    // Of two with one time, the later version counts.
    if (price.valid_from <= now && (known === undefined || known.valid_from <= price.valid_from))
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

interface SetPriceProps {
  /** Models that have or had a price. */
  readonly models: readonly string[];
  readonly onDone: (changed: boolean) => void;
}

const NO_PRICE = {
  model: '',
  prompt: '',
  cached: '',
  completion: '',
  flex: '100',
  batch: '100',
  from: '',
};

/** Returns the body of a price; empty fields are the server's defaults. */
const priceBody = ({ model, prompt, cached, completion, flex, batch, from }: typeof NO_PRICE) => {
  const permille = (text: string) => Math.round(Number(text) * 10);
  return {
    model,
    prompt_micros: microsOf(prompt),
    ...(cached !== '' && { cached_prompt_micros: microsOf(cached) }),
    completion_micros: microsOf(completion),
    flex_permille: permille(flex),
    batch_permille: permille(batch),
    ...(from !== '' && { valid_from: Date.parse(`${from}Z`) / 1000 }),
  };
};

function SetPrice({ models, onDone }: SetPriceProps) {
  const account = useAccount();
  const { values, bind } = useDraft(NO_PRICE);
  const amount = { type: 'number', min: 0, step: 'any' } as const;
  return (
    <Dialog title="Set a price" onClose={() => onDone(false)}>
      <Form
        action="Set the price"
        onSend={async () => {
          await account.ask('/admin/v1/prices', { body: priceBody(values.peek()) });
          onDone(true);
        }}
      >
        <Field title="Model" hint="its id, not an alias" required list="priced-models" {...bind('model')} />
        <datalist id="priced-models">
          {models.map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        <Field title="Prompt" hint="per million tokens" required {...amount} {...bind('prompt')} />
        <Field title="Cached prompt" hint="empty = that of the prompt" {...amount} {...bind('cached')} />
        <Field title="Generated" hint="per million tokens" required {...amount} {...bind('completion')} />
        <Field title="Flex" hint="% of the price" required {...amount} {...bind('flex')} />
        <Field title="Batches" hint="% of the price" required {...amount} {...bind('batch')} />
        <Field title="From" hint="UTC; empty = now" type="datetime-local" {...bind('from')} />
      </Form>
    </Dialog>
  );
}
