import { useSignal } from '@preact/signals';
import { askAll, askJson, useAccount } from '../../account/account.ts';
import type { Column } from '../../account/data-table.tsx';
import { dateText, relative } from '../../account/formats.ts';
import { useResource } from '../../account/resource.ts';
import { SearchTable } from '../../account/search-table.tsx';
import { Loaded } from '../../account/states.tsx';
import { Button } from '../../controls/button.tsx';
import { useRights } from '../rights.ts';
import { TenantDialogs, type TenantTask } from './tenant-dialogs.tsx';
import type { PlanObject, TenantObject } from './tenant-object.ts';

/** All tenants, or the one that the key is bound to. */
export function TenantsSection() {
  const account = useAccount();
  const { tenant: only, owns } = useRights();
  const task = useSignal<TenantTask | null>(null);
  const loaded = useResource(async (signal) => {
    if (only !== null) {
      const path = `/admin/v1/tenants/${encodeURIComponent(only)}`;
      return { tenants: [await askJson<TenantObject>(account, path, { signal })], plans: [] };
    }
    const [tenants, plans] = await Promise.all([
      askAll<TenantObject>(account, '/admin/v1/tenants', signal),
      askAll<PlanObject>(account, '/admin/v1/plans', signal),
    ]);
    return { tenants, plans };
  }, only ?? '');
  const current = task.value;
  return (
    <>
      <div class="row spread">
        <h2>Tenants</h2>
        {owns && (
          <Button
            class="primary"
            icon="plus"
            text="Create a tenant"
            onClick={() => (task.value = { kind: 'create' })}
          />
        )}
      </div>
      <Loaded of={loaded}>
        {({ tenants, plans }) => (
          <>
            <TenantTable tenants={tenants} onOpen={(tenant) => (task.value = { kind: 'open', tenant })} />
            {current && (
              <TenantDialogs
                key={current.kind}
                task={current}
                plans={plans}
                onTask={(next) => (task.value = next)}
                onDone={(changed) => {
                  // Another dialog may be open when a closed one has its answer.
                  if (task.peek() === current) task.value = null;
                  if (changed) loaded.reload();
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

interface TenantTableProps {
  readonly tenants: readonly TenantObject[];
  readonly onOpen: (tenant: TenantObject) => void;
}

function TenantTable({ tenants, onOpen }: TenantTableProps) {
  const now = useAccount().clock.now() / 1000;
  const columns: readonly Column<TenantObject>[] = [
    {
      title: 'Name',
      of: ({ name }) => name,
      show: (tenant) => (
        <button type="button" class="link key-name" title={tenant.name} onClick={() => onOpen(tenant)}>
          <bdi>{tenant.name}</bdi>
        </button>
      ),
    },
    { title: 'State', of: stateOf, show: (tenant) => <State of={tenant} /> },
    { title: 'Plan', of: ({ plan }) => plan },
    {
      title: 'Created',
      of: ({ created_at }) => created_at,
      show: ({ created_at }) => <span title={dateText(created_at)}>{relative(created_at, now)}</span>,
      isNumber: true,
    },
    { title: 'Id', of: ({ id }) => id, show: ({ id }) => <code>{id}</code> },
  ];
  return (
    <SearchTable
      caption="Tenants"
      sortedBy="Created"
      columns={columns}
      rows={tenants}
      idOf={({ id }) => id}
      textsOf={({ name, id, plan }) => [name, id, plan ?? '']}
      hint="name, id or plan"
      empty={['There are no tenants yet.', 'No tenant is like this.']}
    />
  );
}

const stateOf = ({ suspended }: TenantObject): string => (suspended ? 'suspended' : 'active');

const State = ({ of: tenant }: { readonly of: TenantObject }) => (
  <span class={`key-badge ${tenant.suspended ? 'disabled' : ''}`}>{stateOf(tenant)}</span>
);
