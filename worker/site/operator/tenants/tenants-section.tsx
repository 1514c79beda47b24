import { askAll, askJson, useAccount, useOwnKey } from '../../account/account.ts';
import type { PlanObject, TenantObject } from '../../account/api-objects.ts';
import { ageColumn, codeColumn, nameColumn } from '../../account/columns.tsx';
import { dateText } from '../../account/formats.ts';
import type { RecordAction } from '../../account/record-dialog.tsx';
import { Records } from '../../account/records.tsx';
import { useResource } from '../../account/resource.ts';
import { Pairs } from '../../controls/pairs.tsx';
import { type Rights, useRights } from '../rights.ts';
import { Credits } from './credits.tsx';
import { tenantFields } from './tenant-fields.ts';

const PATH = '/admin/v1/tenants';

/** All tenants, or the one that the key is bound to. */
export function TenantsSection() {
  const account = useAccount();
  const { limits } = useOwnKey();
  const rights = useRights();
  const { tenant: only, owns, bills, changesTenants } = rights;
  const loaded = useResource(async (signal) => {
    if (only !== null) {
      const path = `${PATH}/${encodeURIComponent(only)}`;
      return { tenants: [await askJson<TenantObject>(account, path, { signal })], plans: [] };
    }
    const [tenants, plans] = await Promise.all([
      askAll<TenantObject>(account, PATH, signal),
      askAll<PlanObject>(account, '/admin/v1/plans', signal),
    ]);
    return { tenants, plans };
  }, only ?? '');
  const choices = { plans: loaded.value?.plans ?? [], limits, bills };
  return (
    <Records
      title="Tenants"
      noun="tenant"
      path={PATH}
      of={{ ...loaded, value: loaded.value?.tenants ?? null }}
      create={owns ? 'Create a tenant' : null}
      columnsOf={(onOpen) => [
        nameColumn(onOpen),
        { title: 'State', of: stateOf, show: (tenant) => <State of={tenant} /> },
        { title: 'Plan', of: ({ plan }) => plan },
        ageColumn(account.clock),
        codeColumn('Id', ({ id }) => id),
      ]}
      sortedBy="Created"
      search={{
        textsOf: ({ name, id, plan }) => [name, id, plan ?? ''],
        hint: 'name, id or plan',
        empty: ['There are no tenants yet.', 'No tenant is like this.'],
      }}
      about={(tenant) => (
        <Pairs
          of={[
            ['Id', tenant.id],
            ['State', stateOf(tenant)],
            ['Created', dateText(tenant.created_at)],
            ['Plan', changesTenants ? null : (tenant.plan ?? 'none')],
          ]}
        />
      )}
      actionsOf={(tenant) => actionsOf(tenant, rights)}
      partsOf={(tenant) => (changesTenants ? (texts) => tenantFields(tenant, choices, texts) : null)}
    />
  );
}

const stateOf = ({ suspended }: TenantObject): string => (suspended ? 'suspended' : 'active');

const State = ({ of: tenant }: { readonly of: TenantObject }) => (
  <span class={`key-badge ${tenant.suspended ? 'disabled' : ''}`}>{stateOf(tenant)}</span>
);

/** What else the key may do with a tenant. */
const actionsOf = (
  tenant: TenantObject,
  { tenant: only, owns, bills }: Rights,
): readonly (RecordAction | false)[] => [
  only === null && {
    text: 'Balance…',
    dialog: (onDone) => <Credits tenant={tenant} onClose={() => onDone(false)} />,
  },
  bills && tenant.suspended && { text: 'Resume', request: { method: 'PATCH', body: { suspended: false } } },
  bills &&
    !tenant.suspended && {
      text: 'Suspend…',
      isDanger: true,
      request: { method: 'PATCH', body: { suspended: true } },
      consequence: (
        <>
          (<code>{tenant.id}</code>) is rejected from now on, and its streams end within 2 s, until it is
          resumed. Only suspended tenants can be erased.
        </>
      ),
    },
  owns &&
    tenant.suspended && {
      text: 'Erase…',
      isDanger: true,
      request: { method: 'DELETE' },
      consequence: (
        <>
          (<code>{tenant.id}</code>) loses its keys, files, batches, limits and entries of the balance, for
          ever. Sums of its usage by month and model stay.
        </>
      ),
    },
];
