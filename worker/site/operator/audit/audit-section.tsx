import { useSignal } from '@preact/signals';
import { useAccount } from '../../account/account.ts';
import { codeColumn, textColumn, timeColumn } from '../../account/columns.tsx';
import type { Column } from '../../account/data-table.tsx';
import { useDraft } from '../../account/form/draft.ts';
import { Field } from '../../account/form/fields.tsx';
import { DAY_S, dateText, dayOf } from '../../account/formats.ts';
import { PagedTable } from '../../account/paged-table.tsx';
import { Pairs } from '../../account/pairs-list.tsx';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
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
  const { values, bind } = useDraft({
    from: dayOf(now - 30 * DAY_S * 1000),
    to: dayOf(now),
    search: '',
    tenant: '',
    key: '',
    action: '',
  });
  const asked = useSignal(values.value);
  const opened = useSignal<AuditEntry | null>(null);
  return (
    <>
      <h2>Audit log</h2>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          asked.value = values.value;
        }}
      >
        <Field
          title="Find"
          type="search"
          placeholder="in targets and new values"
          dir="auto"
          {...bind('search')}
        />
        {only === null && <Field title="Tenant" type="search" placeholder="id" {...bind('tenant')} />}
        <Field title="Key" type="search" placeholder="id" {...bind('key')} />
        <Field title="Action" type="search" placeholder="such as createKey" {...bind('action')} />
        <Field title="From" type="date" required {...bind('from')} />
        <Field title="to" type="date" required {...bind('to')} />
        <Button class="primary" type="submit" text="Search" />
      </form>
      <PagedTable<AuditEntry, AuditPage>
        caption="Audit log"
        columns={columnsOf((entry) => (opened.value = entry))}
        idOf={({ id }) => id}
        path="/admin/v1/audit"
        query={asked.value}
        nextOf={({ data, has_more }) => (has_more ? data.at(-1)!.id : null)}
        empty={['No entries', 'Each change adds one. Nothing of these days is like this.']}
      />
      {opened.value && <Entry of={opened.value} onClose={() => (opened.value = null)} />}
    </>
  );
}

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
        ['Time', dateText(entry.created_at)],
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
