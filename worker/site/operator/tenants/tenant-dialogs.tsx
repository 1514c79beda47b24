import { useAccount } from '../../account/account.ts';
import { ConfirmByName } from '../../account/form/confirm-by-name.tsx';
import { dateText } from '../../account/formats.ts';
import { Pairs } from '../../account/pairs-list.tsx';
import { useAction } from '../../account/resource.ts';
import { FormFault } from '../../account/states.tsx';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { useRights } from '../rights.ts';
import { Credits } from './credits.tsx';
import { TenantForm } from './tenant-form.tsx';
import { draftOf, newTenantBody, type PlanObject, type TenantObject, tenantPatch } from './tenant-object.ts';

/** What is done with tenants in dialogs. */

export type TenantTask =
  | { readonly kind: 'create' }
  | { readonly kind: 'open' | 'credits' | 'suspend' | 'delete'; readonly tenant: TenantObject };

interface TaskProps {
  /** Closes the dialog; `changed` = the list is old. */
  readonly onDone: (changed: boolean) => void;
  readonly plans: readonly PlanObject[];
}

interface OneProps extends TaskProps {
  readonly of: TenantObject;
  readonly onTask: (task: TenantTask) => void;
}

interface TenantDialogsProps extends TaskProps {
  readonly task: TenantTask;
  readonly onTask: (task: TenantTask) => void;
}

export function TenantDialogs({ task, ...props }: TenantDialogsProps) {
  switch (task.kind) {
    case 'create':
      return <CreateTenant {...props} />;
    case 'open':
      return <OpenTenant of={task.tenant} {...props} />;
    case 'credits':
      return <Credits tenant={task.tenant} onClose={() => props.onDone(false)} />;
    case 'suspend':
      return <SuspendTenant of={task.tenant} {...props} />;
    case 'delete':
      return <DeleteTenant of={task.tenant} {...props} />;
  }
}

const pathOf = ({ id }: TenantObject): string => `/admin/v1/tenants/${id}`;

function CreateTenant({ plans, onDone }: TaskProps) {
  const account = useAccount();
  return (
    <Dialog title="Create a tenant" class="wide" onClose={() => onDone(false)}>
      <TenantForm
        isNew
        initial={draftOf(null)}
        own={{}}
        plans={plans}
        action="Create"
        onSave={async (draft) => {
          await account.ask('/admin/v1/tenants', { body: newTenantBody(draft) });
          onDone(true);
        }}
      />
    </Dialog>
  );
}

/** One tenant: its facts, what else may be done with it, and its fields. */
function OpenTenant({ of: tenant, plans, onTask, onDone }: OneProps) {
  const account = useAccount();
  const { tenant: only, owns, bills, changesTenants } = useRights();
  const change = async (body: object) => {
    await account.ask(pathOf(tenant), { method: 'PATCH', body });
    onDone(true);
  };
  const resuming = useAction(() => change({ suspended: false }));
  const initial = draftOf(tenant);
  return (
    <Dialog title={tenant.name} class="wide" onClose={() => onDone(false)}>
      <div class="stack">
        <Pairs
          of={[
            ['Id', tenant.id],
            ['State', tenant.suspended ? 'suspended' : 'active'],
            ['Created', dateText(tenant.created_at)],
            ...(changesTenants ? [] : ([['Plan', tenant.plan ?? 'none']] as const)),
          ]}
        />
        <div class="row">
          {only === null && <Button text="Balance…" onClick={() => onTask({ kind: 'credits', tenant })} />}
          {bills && !tenant.suspended && (
            <Button class="danger" text="Suspend…" onClick={() => onTask({ kind: 'suspend', tenant })} />
          )}
          {bills && tenant.suspended && (
            <Button text="Resume" disabled={resuming.isBusy} onClick={resuming.run} />
          )}
          {owns && tenant.suspended && (
            <Button class="danger" text="Erase…" onClick={() => onTask({ kind: 'delete', tenant })} />
          )}
        </div>
        <FormFault failure={resuming.failure} />
        {changesTenants && (
          <TenantForm
            isNew={false}
            initial={initial}
            own={tenant.limits}
            plans={plans}
            action="Save"
            onSave={(draft) => change(tenantPatch(draft, initial))}
          />
        )}
      </div>
    </Dialog>
  );
}

function SuspendTenant({ of: tenant, onDone }: OneProps) {
  const account = useAccount();
  return (
    <ConfirmByName
      title="Suspend a tenant"
      kind="tenant"
      name={tenant.name}
      action="Suspend the tenant"
      onClose={() => onDone(false)}
      onConfirm={async () => {
        await account.ask(pathOf(tenant), { method: 'PATCH', body: { suspended: true } });
        onDone(true);
      }}
    >
      (<code>{tenant.id}</code>) is rejected from now on, and its streams end within 2 s, until it is resumed.
      Only suspended tenants can be erased.
    </ConfirmByName>
  );
}

function DeleteTenant({ of: tenant, onDone }: OneProps) {
  const account = useAccount();
  return (
    <ConfirmByName
      title="Erase a tenant"
      kind="tenant"
      name={tenant.name}
      action="Erase the tenant"
      onClose={() => onDone(false)}
      onConfirm={async () => {
        await account.ask(pathOf(tenant), { method: 'DELETE' });
        onDone(true);
      }}
    >
      (<code>{tenant.id}</code>) loses its keys, files, batches, limits and entries of the balance, for ever.
      Sums of its usage by month and model stay.
    </ConfirmByName>
  );
}
