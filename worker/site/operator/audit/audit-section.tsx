import { useSignal } from '@preact/signals';
import { askJson, useAccount } from '../../account/account.ts';
import { type Column, DataTable } from '../../account/data-table.tsx';
import { Field } from '../../account/form/fields.tsx';
import { DAY_S, dateText, dayOf } from '../../account/formats.ts';
import { Pairs } from '../../account/pairs-list.tsx';
import { useResource } from '../../account/resource.ts';
import { Empty, Loaded } from '../../account/states.tsx';
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

const PAGE = '50';
const FIRST_PAGE = [''];

/** Who changed what, new entries first, with a search that the server does. */
export function AuditSection() {
  const account = useAccount();
  const { tenant: only } = useRights();
  const now = account.clock.now();
  const draft = useSignal({
    ...{ from: dayOf(now - 30 * DAY_S * 1000), to: dayOf(now) },
    ...{ search: '', tenant: '', key: '', action: '' },
  });
  const asked = useSignal(draft.value);
  /** Where each page begins that was shown; the last one is shown. */
  const starts = useSignal<readonly string[]>(FIRST_PAGE);
  const opened = useSignal<AuditEntry | null>(null);
  const given = Object.entries({ ...asked.value, after: starts.value.at(-1)! });
  const search = new URLSearchParams([['limit', PAGE], ...given.filter(([, text]) => text !== '')]);
  const path = `/admin/v1/audit?${search}`;
  const page = useResource((signal) => askJson<AuditPage>(account, path, { signal }), path);
  const bind = (name: keyof typeof draft.value) => ({
    value: draft.value[name],
    onInput: (text: string) => (draft.value = { ...draft.value, [name]: text }),
  });
  return (
    <>
      <h2>Audit log</h2>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          asked.value = draft.value;
          starts.value = FIRST_PAGE;
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
      <Loaded of={page}>
        {({ data, has_more }) => (
          <>
            {data.length === 0 ? (
              <Empty title="No entries">Each change adds one. Nothing of these days is like this.</Empty>
            ) : (
              <DataTable
                caption="Audit log"
                columns={columnsOf((entry) => (opened.value = entry))}
                rows={data}
                idOf={({ id }) => id}
              />
            )}
            <div class="row pages">
              <Button
                text="Newer"
                disabled={starts.value.length === 1}
                onClick={() => (starts.value = starts.value.slice(0, -1))}
              />
              <Button
                text="Older"
                disabled={!has_more}
                onClick={() => (starts.value = [...starts.value, data.at(-1)!.id])}
              />
            </div>
          </>
        )}
      </Loaded>
      {opened.value && <Entry of={opened.value} onClose={() => (opened.value = null)} />}
    </>
  );
}

const columnsOf = (onOpen: (entry: AuditEntry) => void): readonly Column<AuditEntry>[] => [
  {
    title: 'Time',
    of: ({ created_at }) => created_at,
    show: (entry) => (
      <button type="button" class="link" title={`Entry ${entry.id}`} onClick={() => onOpen(entry)}>
        {dateText(entry.created_at)}
      </button>
    ),
  },
  { title: 'Action', of: ({ action }) => action },
  {
    title: 'Target',
    of: ({ target }) => target,
    show: ({ target }) => (
      <span class="batch-name">
        <bdi>{target}</bdi>
      </span>
    ),
  },
  { title: 'Tenant', of: ({ tenant }) => tenant },
  { title: 'Key', of: ({ key }) => key, show: ({ key }) => <code>{key}</code> },
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
