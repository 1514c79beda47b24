import { askAll, useAccount, useOwnKey } from '../../account/account.ts';
import { codeColumn, nameColumn, textColumn } from '../../account/columns.tsx';
import { ConfirmByName } from '../../account/form/confirm-by-name.tsx';
import { useDraft } from '../../account/form/draft.ts';
import { Field, NameField } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { changedFields, changedLimits, LimitFields, limitTexts } from '../../account/form/limit-fields.tsx';
import { amount, dateText, limitName } from '../../account/formats.ts';
import { Pairs } from '../../account/pairs-list.tsx';
import { Records, type TaskProps } from '../../account/records.tsx';
import { useResource } from '../../account/resource.ts';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { useRights } from '../rights.ts';
import type { PlanObject } from '../tenants/tenant-object.ts';

/** The plans, whose limits tenants share. */
export function PlansSection() {
  const account = useAccount();
  const { bills } = useRights();
  const plans = useResource((signal) => askAll<PlanObject>(account, '/admin/v1/plans', signal), '');
  return (
    <Records
      title="Plans"
      of={plans}
      create={bills ? 'Create a plan' : null}
      columnsOf={(onOpen) => [
        nameColumn(({ name }) => name, onOpen),
        textColumn('Limits', limitsText),
        { title: 'Weight', of: ({ weight }) => weight, isNumber: true },
        codeColumn('Id', ({ id }) => id),
      ]}
      search={{
        textsOf: ({ name, id }) => [name, id],
        hint: 'name or id',
        empty: ['There are no plans yet.', 'No plan is like this.'],
      }}
      dialog={(props) => <PlanDialog {...props} />}
    />
  );
}

const limitsText = ({ limits }: PlanObject): string =>
  Object.entries(limits)
    .flatMap(([name, limit]) => (limit === null ? [] : [`${limitName(name)}: ${amount(name, limit)}`]))
    .join(', ') || 'none';

function PlanDialog({ task: { kind, of: plan }, onTask, onDone }: TaskProps<PlanObject>) {
  const account = useAccount();
  const { bills } = useRights();
  const close = () => onDone(false);
  const send = async (path: string, method: string, body?: object) => {
    await account.ask(`/admin/v1/plans${path}`, { method, body });
    onDone(true);
  };
  if (plan === null)
    return (
      <Dialog title="Create a plan" class="wide" onClose={close}>
        <PlanForm plan={null} onSave={(body) => send('', 'POST', body)} />
      </Dialog>
    );
  if (kind === 'delete')
    return (
      <ConfirmByName
        verb="Delete"
        kind="plan"
        name={plan.name}
        onDone={onDone}
        onConfirm={() => account.ask(`/admin/v1/plans/${plan.id}`, { method: 'DELETE' })}
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
            ...(bills ? [] : ([['Limits', limitsText(plan)]] as const)),
          ]}
        />
        {bills && (
          <>
            <div class="row">
              <Button class="danger" text="Delete…" onClick={() => onTask('delete')} />
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
  const before = limitTexts(plan?.limits ?? {});
  const { values, bind, bindEach } = useDraft({
    id: '',
    name: plan?.name ?? '',
    weight: String(plan?.weight ?? 1),
    limits: before,
  });
  const save = () => {
    const { id, name, weight, limits } = values.peek();
    const next = { name, weight: Number(weight) };
    const changed = changedLimits(limits, before, null);
    if (plan === null) return onSave({ id, ...next, limits: changed });
    const isLimited = Object.keys(changed).length > 0;
    return onSave({ ...changedFields(next, plan), ...(isLimited && { limits: changed }) });
  };
  return (
    <Form action={plan === null ? 'Create' : 'Save'} onSend={save}>
      <NameField {...bind('name')} />
      {plan === null && (
        <Field
          title="Id"
          hint="lower-case letters, digits and hyphens"
          required
          pattern="[a-z0-9][a-z0-9\-]{0,62}"
          {...bind('id')}
        />
      )}
      <Field
        title="Weight"
        hint="share of an origin"
        type="number"
        required
        step="any"
        min={0.000001}
        {...bind('weight')}
      />
      <LimitFields names={names} emptyText={() => 'no limit'} {...bindEach('limits')} />
    </Form>
  );
}
