import { askAll, askJson, useAccount } from '../../account/account.ts';
import { ageColumn, codeColumn, nameColumn } from '../../account/columns.tsx';
import { Records } from '../../account/records.tsx';
import { useResource } from '../../account/resource.ts';
import { useRights } from '../rights.ts';
import { TenantDialogs } from './tenant-dialogs.tsx';
import type { PlanObject, TenantObject } from './tenant-object.ts';

/** All tenants, or the one that the key is bound to. */
export function TenantsSection() {
  const account = useAccount();
  const { tenant: only, owns } = useRights();
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
  const now = account.clock.now() / 1000;
  return (
    <Records
      title="Tenants"
      of={{ ...loaded, value: loaded.value?.tenants ?? null }}
      create={owns ? 'Create a tenant' : null}
      columnsOf={(onOpen) => [
        nameColumn(({ name }) => name, onOpen),
        { title: 'State', of: stateOf, show: (tenant) => <State of={tenant} /> },
        { title: 'Plan', of: ({ plan }) => plan },
        ageColumn(now),
        codeColumn('Id', ({ id }) => id),
      ]}
      sortedBy="Created"
      search={{
        textsOf: ({ name, id, plan }) => [name, id, plan ?? ''],
        hint: 'name, id or plan',
        empty: ['There are no tenants yet.', 'No tenant is like this.'],
      }}
      dialog={(props) => <TenantDialogs plans={loaded.value?.plans ?? []} {...props} />}
    />
  );
}

const stateOf = ({ suspended }: TenantObject): string => (suspended ? 'suspended' : 'active');

const State = ({ of: tenant }: { readonly of: TenantObject }) => (
  <span class={`key-badge ${tenant.suspended ? 'disabled' : ''}`}>{stateOf(tenant)}</span>
);
