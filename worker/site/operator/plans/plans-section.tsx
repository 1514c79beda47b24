import { useSignal } from '@preact/signals';
import { askAll, useAccount, useOwnKey } from '../../account/account.ts';
import type { Column } from '../../account/data-table.tsx';
import { ConfirmByName } from '../../account/form/confirm-by-name.tsx';
import { Field, NameField } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { changedFields, changedLimits, LimitFields, limitTexts } from '../../account/form/limit-fields.tsx';
import { amount, dateText, limitName } from '../../account/formats.ts';
import { Pairs } from '../../account/pairs-list.tsx';
import { useResource } from '../../account/resource.ts';
import { SearchTable } from '../../account/search-table.tsx';
import { Loaded } from '../../account/states.tsx';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { useRights } from '../rights.ts';
import type { PlanObject } from '../tenants/tenant-object.ts';

type PlanTask = { readonly kind: 'create' } | { readonly kind: 'open' | 'delete'; readonly plan: PlanObject };

/** The plans, whose limits tenants share. */
export function PlansSection() {
  const account = useAccount();
  const { bills } = useRights();
  const task = useSignal<PlanTask | null>(null);
  const plans = useResource((signal) => askAll<PlanObject>(account, '/admin/v1/plans', signal), '');
  const current = task.value;
  return (
    <>
      <div class="row spread">
        <h2>Plans</h2>
        {bills && (
          <Button
            class="primary"
            icon="plus"
            text="Create a plan"
            onClick={() => (task.value = { kind: 'create' })}
          />
        )}
      </div>
      <Loaded of={plans}>
        {(all) => (
          <SearchTable
            caption="Plans"
            columns={columnsOf((plan) => (task.value = { kind: 'open', plan }))}
            rows={all}
            idOf={({ id }) => id}
            textsOf={({ name, id }) => [name, id]}
            hint="name or id"
            empty={['There are no plans yet.', 'No plan is like this.']}
          />
        )}
      </Loaded>
      {current && (
        <PlanDialog
          key={current.kind}
          task={current}
          onTask={(next) => (task.value = next)}
          onDone={(changed) => {
            if (task.peek() === current) task.value = null;
            if (changed) plans.reload();
          }}
        />
      )}
    </>
  );
}

const limitsText = ({ limits }: PlanObject): string =>
  Object.entries(limits)
    .flatMap(([name, limit]) => (limit === null ? [] : [`${limitName(name)}: ${amount(name, limit)}`]))
    .join(', ');

const columnsOf = (onOpen: (plan: PlanObject) => void): readonly Column<PlanObject>[] => [
  {
    title: 'Name',
    of: ({ name }) => name,
    show: (plan) => (
      <button type="button" class="link key-name" title={plan.name} onClick={() => onOpen(plan)}>
        <bdi>{plan.name}</bdi>
      </button>
    ),
  },
  {
    title: 'Limits',
    of: limitsText,
    show: (plan) => <span class="batch-name">{limitsText(plan) || 'none'}</span>,
  },
  { title: 'Weight', of: ({ weight }) => weight, isNumber: true },
  { title: 'Id', of: ({ id }) => id, show: ({ id }) => <code>{id}</code> },
];

interface PlanDialogProps {
  readonly task: PlanTask;
  readonly onTask: (task: PlanTask) => void;
  /** Closes the dialog; `changed` = the list is old. */
  readonly onDone: (changed: boolean) => void;
}

function PlanDialog({ task, onTask, onDone }: PlanDialogProps) {
  const account = useAccount();
  const { bills } = useRights();
  const close = () => onDone(false);
  const send = async (path: string, method: string, body?: object) => {
    await account.ask(`/admin/v1/plans${path}`, { method, body });
    onDone(true);
  };
  if (task.kind === 'create')
    return (
      <Dialog title="Create a plan" class="wide" onClose={close}>
        <PlanForm plan={null} onSave={(body) => send('', 'POST', body)} />
      </Dialog>
    );
  const { plan } = task;
  if (task.kind === 'delete')
    return (
      <ConfirmByName
        title="Delete a plan"
        kind="plan"
        name={plan.name}
        action="Delete the plan"
        onClose={close}
        onConfirm={() => send(`/${plan.id}`, 'DELETE')}
      >
        (<code>{plan.id}</code>) cannot be given to tenants any more. The server refuses it while a tenant has
        the plan.
      </ConfirmByName>
    );
  return (
    <Dialog title={plan.name} class="wide" onClose={close}>
      <div class="stack">
        <Pairs
          of={[
            ['Id', plan.id],
            ['Created', dateText(plan.created_at)],
            ...(bills ? [] : ([['Limits', limitsText(plan) || 'none']] as const)),
          ]}
        />
        {bills && (
          <>
            <div class="row">
              <Button class="danger" text="Delete…" onClick={() => onTask({ kind: 'delete', plan })} />
            </div>
            <PlanForm plan={plan} onSave={(body) => send(`/${plan.id}`, 'PATCH', body)} />
          </>
        )}
      </div>
    </Dialog>
  );
}

interface PlanFormProps {
  /** Null = a new one. */
  readonly plan: PlanObject | null;
  readonly onSave: (body: object) => Promise<void>;
}

/** The settings of a plan as fields. Sends all of a new one, and of another one those that were changed. */
function PlanForm({ plan, onSave }: PlanFormProps) {
  const names = Object.keys(useOwnKey().limits);
  const id = useSignal('');
  const name = useSignal(plan?.name ?? '');
  const weight = useSignal(String(plan?.weight ?? 1));
  const before = limitTexts(plan?.limits ?? {});
  const limits = useSignal(before);
  const save = () => {
    const next = { name: name.peek(), weight: Number(weight.peek()) };
    const changed = changedLimits(limits.peek(), before, null);
    if (plan === null) return onSave({ id: id.peek(), ...next, limits: changed });
    const isLimited = Object.keys(changed).length > 0;
    return onSave({ ...changedFields(next, plan), ...(isLimited && { limits: changed }) });
  };
  return (
    <Form action={plan === null ? 'Create' : 'Save'} onSend={save}>
      <NameField value={name.value} onInput={(text) => (name.value = text)} />
      {plan === null && (
        <Field
          title="Id"
          hint="lower-case letters, digits and hyphens"
          required
          pattern="[a-z0-9][a-z0-9\-]{0,62}"
          value={id.value}
          onInput={(text) => (id.value = text)}
        />
      )}
      <Field
        title="Weight"
        hint="share of an origin"
        type="number"
        required
        step="any"
        min={0.000001}
        value={weight.value}
        onInput={(text) => (weight.value = text)}
      />
      <LimitFields
        names={names}
        texts={limits.value}
        onChange={(limit, text) => (limits.value = { ...limits.value, [limit]: text })}
        emptyText={() => 'no limit'}
      />
    </Form>
  );
}
