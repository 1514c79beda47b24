import { useOwnKey } from '../../account/account.ts';
import type { PlanObject } from '../../account/api-objects.ts';
import { codeColumn, nameColumn, textColumn } from '../../account/columns.tsx';
import { type FormPart, LEAST, limitFields, NAME } from '../../account/form/form-fields.ts';
import { amount, dateText, limitName } from '../../account/formats.ts';
import { Records } from '../../account/records.tsx';
import { useList } from '../../account/resource.ts';
import { Pairs } from '../../controls/pairs.tsx';
import { useRights } from '../rights.ts';
import { newId } from '../tenants/tenant-fields.ts';

const PATH = '/admin/v1/plans';

/** The plans, whose limits tenants share. */
export function PlansSection() {
  const { bills } = useRights();
  const names = Object.keys(useOwnKey().limits);
  return (
    <Records<PlanObject>
      title="Plans"
      noun="plan"
      path={PATH}
      of={useList(PATH)}
      create={bills ? 'Create a plan' : null}
      columnsOf={(onOpen) => [
        nameColumn(onOpen),
        textColumn('Limits', limitsText),
        { title: 'Weight', of: ({ weight }) => weight, isNumber: true },
        codeColumn('Id', ({ id }) => id),
      ]}
      search={{
        textsOf: ({ name, id }) => [name, id],
        hint: 'name or id',
        empty: ['There are no plans yet.', 'No plan is like this.'],
      }}
      about={(plan) => (
        <Pairs
          of={[
            ['Id', plan.id],
            ['Created', dateText(plan.created_at)],
            ['Limits', bills ? null : limitsText(plan)],
          ]}
        />
      )}
      actionsOf={({ id }) => [
        bills && {
          text: 'Delete…',
          isDanger: true,
          request: { method: 'DELETE' },
          consequence: (
            <>
              (<code>{id}</code>) cannot be given to tenants any more. The server refuses it while a tenant
              has the plan.
            </>
          ),
        },
      ]}
      partsOf={(plan) => (bills ? () => planFields(names, plan === null) : null)}
    />
  );
}

const limitsText = ({ limits }: PlanObject): string =>
  Object.entries(limits)
    .flatMap(([name, limit]) => (limit === null ? [] : [`${limitName(name)}: ${amount(name, limit)}`]))
    .join(', ') || 'none';

const planFields = (limits: readonly string[], isNew: boolean): readonly FormPart[] => [
  NAME,
  ...(isNew ? [newId('', true)] : []),
  {
    name: 'weight',
    title: 'Weight',
    hint: 'share of an origin',
    kind: 'number',
    initial: '1',
    input: { required: true, min: LEAST },
  },
  limitFields(limits, () => 'no limit'),
];
