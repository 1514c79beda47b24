import { useSignal } from '@preact/signals';
import { useAccount } from '../../account/account.ts';
import { codeColumn, textColumn, timeColumn } from '../../account/columns.tsx';
import { Form } from '../../account/form/form.tsx';
import type { FormField, Texts } from '../../account/form/form-fields.ts';
import { DAY_S, dayOf, momentText } from '../../account/formats.ts';
import { PagedTable } from '../../account/paged-table.tsx';
import type { Column } from '../../controls/data-table.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Pairs } from '../../controls/pairs.tsx';
import { useRights } from '../rights.ts';

interface AuditEntry {
  readonly id: string;
  /** Unix seconds. */
  readonly created_at: number;
  readonly key: string;
  readonly key_tenant: string;
  /** Null = erased. */
  readonly address: string | null;
  readonly request_id: string;
  readonly action: string;
  readonly target: string;
  readonly tenant: string | null;
  /** Null = erased. */
  readonly changes: Readonly<Record<string, unknown>> | null;
}

interface AuditPage {
  readonly data: readonly AuditEntry[];
  readonly has_more: boolean;
}

/** Who changed what, new entries first, with a search that the server does. */
export function AuditSection() {
  const account = useAccount();
  const { tenant: only } = useRights();
  const now = account.clock.now();
  const days = { from: dayOf(now - 30 * DAY_S * 1000), to: dayOf(now) };
  const asked = useSignal<Texts>(days);
  const opened = useSignal<AuditEntry | null>(null);
  return (
    <>
      <h2>Audit log</h2>
      <Form
        isRow
        action="Search"
        record={days}
        partsOf={() => SEARCH.filter(({ name }) => only === null || name !== 'tenant')}
        onSend={async (_, texts) => void (asked.value = texts)}
      />
      <PagedTable<AuditEntry, AuditPage>
        caption="Audit log"
        columns={columnsOf((entry) => (opened.value = entry))}
        path="/admin/v1/audit"
        query={asked.value}
        nextOf={({ data, has_more }) => (has_more ? data.at(-1)!.id : null)}
        empty={['No entries', 'Each change adds one. Nothing of these days is like this.']}
      />
      {opened.value && <Entry of={opened.value} onClose={() => (opened.value = null)} />}
    </>
  );
}

const day = { kind: 'date', input: { required: true } } as const;
const SEARCH: readonly FormField[] = [
  {
    name: 'search',
    title: 'Find',
    kind: 'search',
    input: { placeholder: 'in targets and new values', dir: 'auto' },
  },
  { name: 'tenant', title: 'Tenant', kind: 'search', input: { placeholder: 'id' } },
  { name: 'key', title: 'Key', kind: 'search', input: { placeholder: 'id' } },
  { name: 'action', title: 'Action', kind: 'search', input: { placeholder: 'such as createKey' } },
  { name: 'from', title: 'From', ...day },
  { name: 'to', title: 'to', ...day },
];

const columnsOf = (onOpen: (entry: AuditEntry) => void): readonly Column<AuditEntry>[] => [
  timeColumn(({ id }) => `Entry ${id}`, onOpen),
  { title: 'Action', of: ({ action }) => action },
  textColumn('Target', ({ target }) => target),
  { title: 'Tenant', of: ({ tenant }) => tenant },
  codeColumn('Key', ({ key }) => key),
  { title: 'Address', of: ({ address }) => address },
];

const Entry = ({ of: entry, onClose }: { readonly of: AuditEntry; readonly onClose: () => void }) => (
  <Dialog title={`${entry.action} of ${entry.target}`} class="wide" onClose={onClose}>
    <Pairs
      of={[
        ['Time', momentText(entry.created_at)],
        ['Key', entry.key],
        ['Tenant of the key', entry.key_tenant],
        ['Tenant', entry.tenant],
        ['Address', entry.address],
        ['Request', entry.request_id],
      ]}
    />
    {entry.changes === null ? (
      <p class="quiet">The new values are erased.</p>
    ) : (
      <pre>{JSON.stringify(entry.changes, null, 2)}</pre>
    )}
  </Dialog>
);
