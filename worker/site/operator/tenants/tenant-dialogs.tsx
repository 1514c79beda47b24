import { useAccount } from '../../account/account.ts';
import { ActionButton } from '../../account/form/action-button.tsx';
import { ConfirmByName } from '../../account/form/confirm-by-name.tsx';
import { dateText } from '../../account/formats.ts';
import { Pairs } from '../../account/pairs-list.tsx';
import type { TaskProps } from '../../account/records.tsx';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { useRights } from '../rights.ts';
import { Credits } from './credits.tsx';
import { TenantForm } from './tenant-form.tsx';
import { draftOf, newTenantBody, type PlanObject, type TenantObject, tenantPatch } from './tenant-object.ts';

/** What is done with tenants in dialogs. */

interface DialogsProps extends TaskProps<TenantObject> {
  readonly plans: readonly PlanObject[];
}

interface OneProps extends Omit<DialogsProps, 'task'> {
  readonly of: TenantObject;
}

export function TenantDialogs({ task: { kind, of }, ...props }: DialogsProps) {
  if (of === null) return <CreateTenant {...props} />;
  if (kind === 'credits') return <Credits tenant={of} onClose={() => props.onDone(false)} />;
  if (kind === 'suspend') return <SuspendTenant of={of} {...props} />;
  if (kind === 'delete') return <DeleteTenant of={of} {...props} />;
  return <OpenTenant of={of} {...props} />;
}

const pathOf = ({ id }: TenantObject): string => `/admin/v1/tenants/${id}`;

function CreateTenant({ plans, onDone }: Pick<DialogsProps, 'plans' | 'onDone'>) {
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
          {only === null && <Button text="Balance…" onClick={() => onTask('credits')} />}
          {bills && !tenant.suspended && (
            <Button class="danger" text="Suspend…" onClick={() => onTask('suspend')} />
          )}
          {bills && tenant.suspended && (
            <ActionButton text="Resume" onSend={() => change({ suspended: false })} />
          )}
          {owns && tenant.suspended && (
            <Button class="danger" text="Erase…" onClick={() => onTask('delete')} />
          )}
        </div>
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
      verb="Suspend"
      kind="tenant"
      name={tenant.name}
      onDone={onDone}
      onConfirm={() => account.ask(pathOf(tenant), { method: 'PATCH', body: { suspended: true } })}
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
      verb="Erase"
      kind="tenant"
      name={tenant.name}
      onDone={onDone}
      onConfirm={() => account.ask(pathOf(tenant), { method: 'DELETE' })}
    >
      (<code>{tenant.id}</code>) loses its keys, files, batches, limits and entries of the balance, for ever.
      Sums of its usage by month and model stay.
    </ConfirmByName>
  );
}
