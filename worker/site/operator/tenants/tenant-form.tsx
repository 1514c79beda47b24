import { DIALECT_NAMES } from 'virtual:request-fields';
import { useOwnKey } from '../../account/account.ts';
import { useDraft } from '../../account/form/draft.ts';
import { Choice, Field, Flag, Lines, NameField } from '../../account/form/fields.tsx';
import { Form } from '../../account/form/form.tsx';
import { LimitFields } from '../../account/form/limit-fields.tsx';
import { amount } from '../../account/formats.ts';
import { useRights } from '../rights.ts';
import { FLAGS, type PlanObject, type TenantDraft, type TenantObject } from './tenant-object.ts';

const DIALECTS = DIALECT_NAMES.map((name) => [name, name] as const);

const FLAG_TEXTS: Readonly<Record<(typeof FLAGS)[number], string>> = {
  wait_for_tokens: 'Completions wait for tokens of the next minute',
  open_objects: 'Objects of schemas are open',
  any_key_order: 'Keys of objects come in any order',
};

interface TenantFormProps {
  readonly initial: TenantDraft;
  readonly isNew: boolean;
  /** Limits of its own. */
  readonly own: TenantObject['limits'];
  readonly plans: readonly PlanObject[];
  /** Text of the button. */
  readonly action: string;
  /** Sends the fields. @throws RequestFailure */
  readonly onSave: (draft: TenantDraft) => Promise<void>;
}

/** The settings of a tenant as fields. Keys of one tenant change neither plan nor limits. */
export function TenantForm({ initial, isNew, own, plans, action, onSave }: TenantFormProps) {
  const { bills } = useRights();
  const limitNames = Object.keys(useOwnKey().limits);
  const { values, bind, bindEach } = useDraft(initial);
  const { plan, limits } = values.value;
  const planLimits = plans.find((one) => one.id === plan)?.limits ?? {};
  return (
    <Form action={action} onSend={() => onSave(values.peek())}>
      <NameField {...bind('name')} />
      {isNew && (
        <Field
          title="Id"
          hint="lower-case letters, digits and hyphens; empty = the server chooses one"
          pattern="[a-z0-9][a-z0-9\-]{0,62}"
          autocomplete="off"
          spellcheck={false}
          {...bind('id')}
        />
      )}
      {bills && (
        <>
          <Choice
            title="Plan"
            options={[['', 'None'], ...plans.map((one) => [one.id, one.name] as const)]}
            {...bind('plan')}
          />
          <LimitFields
            names={limitNames}
            emptyText={(limit) => {
              if (own[limit] === null && limits[limit] === undefined) return 'no limit';
              return planLimits[limit] == null ? 'no limit' : `plan: ${amount(limit, planLimits[limit])}`;
            }}
            {...bindEach('limits')}
          />
        </>
      )}
      <details>
        <summary>Dialect, share, names of models</summary>
        <div class="stack">
          <Choice title="Dialect" options={DIALECTS} {...bind('dialect')} />
          {bills && (
            <Field
              title="Weight"
              hint="share of an origin; empty = that of the plan"
              type="number"
              step="any"
              min={0.000001}
              {...bind('weight')}
            />
          )}
          {FLAGS.map((flag) => (
            <Flag key={flag} title={FLAG_TEXTS[flag]} {...bind(flag)} />
          ))}
          <Lines title="Names for models" hint="one pair per line: name: model" {...bind('aliases')} />
        </div>
      </details>
    </Form>
  );
}
