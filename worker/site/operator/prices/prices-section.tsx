import { useSignal } from '@preact/signals';
import { askAll, useAccount } from '../../account/account.ts';
import type { Column } from '../../account/data-table.tsx';
import { Field } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { dateText, microsOf, money } from '../../account/formats.ts';
import { useResource } from '../../account/resource.ts';
import { SearchTable } from '../../account/search-table.tsx';
import { Loaded } from '../../account/states.tsx';
import { Button } from '../../controls/button.tsx';
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
  const isOpen = useSignal(false);
  const prices = useResource((signal) => askAll<PriceObject>(account, '/admin/v1/prices', signal), '');
  return (
    <>
      <div class="row spread">
        <h2>Prices</h2>
        {bills && (
          <Button class="primary" icon="plus" text="Set a price" onClick={() => (isOpen.value = true)} />
        )}
      </div>
      <p class="quiet">In units of the currency per million tokens. Requests keep the price of their time.</p>
      <Loaded of={prices}>
        {(all) => (
          <SearchTable
            caption="Prices"
            sortedBy="From"
            columns={columnsOf(currentOf(all, account.clock.now() / 1000))}
            rows={all}
            idOf={({ id }) => id}
            textsOf={({ model }) => [model]}
            hint="model"
            empty={['No model has a price, so nothing costs anything.', 'No model is like this.']}
          />
        )}
      </Loaded>
      {isOpen.value && (
        <SetPrice
          models={[...new Set((prices.value ?? []).map(({ model }) => model))]}
          onDone={(changed) => {
            isOpen.value = false;
            if (changed) prices.reload();
          }}
        />
      )}
    </>
  );
}

/** Returns the price in effect of each model: the last one that has begun. @param now Unix seconds */
export function currentOf(
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
  const number = (
    title: string,
    of: (price: PriceObject) => number,
    show: (value: number) => string,
  ): Column<PriceObject> => ({ title, of, show: (price) => show(of(price)), isNumber: true });
  const percent = (permille: number) => `${permille / 10} %`;
  return [
    {
      title: 'Model',
      of: ({ model }) => model,
      show: ({ model }) => (
        <span class="batch-name">
          <bdi>{model}</bdi>
        </span>
      ),
    },
    {
      title: 'State',
      of: stateOf,
      show: (price) => (
        <span class={`key-badge ${stateOf(price) === 'past' ? 'ended' : ''}`}>{stateOf(price)}</span>
      ),
    },
    { title: 'From', of: ({ valid_from }) => valid_from, show: ({ valid_from }) => dateText(valid_from) },
    number('Prompt', ({ prompt_micros }) => prompt_micros, money),
    number('Cached', ({ cached_prompt_micros }) => cached_prompt_micros, money),
    number('Generated', ({ completion_micros }) => completion_micros, money),
    number('Flex', ({ flex_permille }) => flex_permille, percent),
    number('Batches', ({ batch_permille }) => batch_permille, percent),
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
export const priceBody = ({ model, prompt, cached, completion, flex, batch, from }: typeof NO_PRICE) => {
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
  const draft = useSignal(NO_PRICE);
  const bind = (name: keyof typeof NO_PRICE) => ({
    value: draft.value[name],
    onInput: (text: string) => (draft.value = { ...draft.value, [name]: text }),
  });
  const amount = { type: 'number', min: 0, step: 'any' } as const;
  return (
    <Dialog title="Set a price" onClose={() => onDone(false)}>
      <Form
        action="Set the price"
        onSend={async () => {
          await account.ask('/admin/v1/prices', { body: priceBody(draft.peek()) });
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
