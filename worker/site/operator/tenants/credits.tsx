import { useSignal } from '@preact/signals';
import { askAll, askJson, useAccount } from '../../account/account.ts';
import type { TenantObject } from '../../account/api-objects.ts';
import { codeColumn, textColumn } from '../../account/columns.tsx';
import { Form } from '../../account/form/form.tsx';
import type { FormField } from '../../account/form/form-fields.ts';
import { dateText, money } from '../../account/formats.ts';
import { useResource } from '../../account/resource.ts';
import { Empty, Loaded } from '../../account/states.tsx';
import { type Column, DataTable, numberColumn } from '../../controls/data-table.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Pairs } from '../../controls/pairs.tsx';
import { useRights } from '../rights.ts';

interface Balance {
  /** Null = no prepaid balance. */
  readonly paid_micros: number | null;
  readonly spent_micros: number;
  readonly balance_micros: number | null;
}

interface Credit {
  readonly id: string;
  readonly micros: number;
  readonly note: string;
  /** Unix seconds. */
  readonly created_at: number;
  readonly warning?: string;
}

const COLUMNS: readonly Column<Credit>[] = [
  {
    title: 'Time',
    of: ({ created_at }) => created_at,
    show: ({ created_at }) => dateText(created_at),
  },
  numberColumn('Amount', ({ micros }) => micros, money),
  codeColumn('Id', ({ id }) => id),
  textColumn('Note', ({ note }) => note),
];

interface CreditsProps {
  readonly tenant: TenantObject;
  readonly onClose: () => void;
}

/** The prepaid balance of a tenant with its entries, and a new entry. */
export function Credits({ tenant, onClose }: CreditsProps) {
  const account = useAccount();
  const { bills } = useRights();
  const warning = useSignal<string | null>(null);
  const loaded = useResource(async (signal) => {
    const [balance, credits] = await Promise.all([
      askJson<Balance>(account, `/admin/v1/balances/${tenant.id}`, { signal }),
      askAll<Credit>(account, '/admin/v1/credits', signal, { tenant: tenant.id }),
    ]);
    return { balance, credits };
  }, tenant.id);
  return (
    <Dialog title={`Balance of ${tenant.name}`} class="wide" onClose={onClose}>
      <div class="stack">
        <Loaded of={loaded}>
          {({ balance, credits }) => (
            <>
              <Facts of={balance} />
              {bills && (
                <AddCredit
                  key={credits.length}
                  tenantId={tenant.id}
                  onAdded={(said) => {
                    warning.value = said ?? null;
                    loaded.reload();
                  }}
                />
              )}
              {warning.value !== null && <p class="error-text">{warning.value}</p>}
              {credits.length === 0 ? (
                <Empty title="No prepaid balance">It begins with the first entry.</Empty>
              ) : (
                <DataTable caption="Entries" sortedBy="Time" columns={COLUMNS} rows={credits} />
              )}
            </>
          )}
        </Loaded>
      </div>
    </Dialog>
  );
}

const Facts = ({ of: { paid_micros, spent_micros, balance_micros } }: { readonly of: Balance }) => (
  <Pairs
    of={[
      ['Balance', balance_micros === null ? 'none' : <strong>{money(balance_micros)}</strong>],
      ['Paid in', paid_micros === null ? null : money(paid_micros)],
      ['Spent', money(spent_micros)],
    ]}
  />
);

interface AddCreditProps {
  readonly tenantId: string;
  readonly onAdded: (warning: string | undefined) => void;
}

function AddCredit({ tenantId, onAdded }: AddCreditProps) {
  const account = useAccount();
  // One id per form: what is sent again after an unclear failure counts once.
  const id = `page-${account.clock.now().toString(36)}`;
  return (
    <details>
      <summary>Add to the balance</summary>
      <Form
        action="Add"
        partsOf={() => creditFields(id)}
        onSend={async (fields) => {
          const body = { tenant: tenantId, ...fields };
          onAdded((await askJson<Credit>(account, '/admin/v1/credits', { body })).warning);
        }}
      />
    </details>
  );
}

const creditFields = (id: string): readonly FormField[] => [
  {
    name: 'micros',
    title: 'Amount',
    hint: 'in units of the currency; negative for a correction',
    kind: 'money',
    input: { required: true },
  },
  {
    name: 'id',
    title: 'Id',
    hint: 'such as the number of a payment; an entry that is sent twice counts once',
    initial: id,
    input: { required: true, pattern: '[\\w.:\\-]{1,100}' },
  },
  { name: 'note', title: 'Note', input: { maxLength: 500, dir: 'auto' } },
];
