import { DIALECT_NAMES } from 'virtual:request-fields';
import type { OwnKey, PlanObject, TenantObject } from '../../account/api-objects.ts';
import {
  type FormField,
  type FormPart,
  LEAST,
  limitFields,
  NAME,
  type Texts,
} from '../../account/form/form-fields.ts';
import { amount } from '../../account/formats.ts';

/** The id of a new plan or tenant. */
export const newId = (hint: string, isRequired: boolean): FormField => ({
  name: 'id',
  title: 'Id',
  hint: `lower-case letters, digits and hyphens${hint}`,
  input: {
    required: isRequired,
    pattern: '[a-z0-9][a-z0-9\\-]{0,62}',
    autocomplete: 'off',
    spellcheck: false,
  },
});

const FLAGS: readonly FormField[] = [
  { name: 'wait_for_tokens', title: 'Completions wait for tokens of the next minute', kind: 'flag' },
  { name: 'open_objects', title: 'Objects of schemas are open', kind: 'flag' },
  { name: 'any_key_order', title: 'Keys of objects come in any order', kind: 'flag' },
];

interface Choices {
  readonly plans: readonly PlanObject[];
  /** Names of the limits that there are. */
  readonly limits: OwnKey['limits'];
  /** Keys of one tenant change neither plan nor limits. */
  readonly bills: boolean;
}

/** The settings of a tenant. An emptied limit is that of the plan again. @param tenant null = a new one */
export function tenantFields(tenant: TenantObject | null, { plans, limits, bills }: Choices, texts: Texts) {
  const planLimits = plans.find(({ id }) => id === texts.plan)?.limits ?? {};
  const emptyText = (limit: string) => {
    if (tenant?.limits[limit] === null && !texts[`limits.${limit}`]) return 'no limit';
    return planLimits[limit] == null ? 'no limit' : `plan: ${amount(limit, planLimits[limit])}`;
  };
  const money: readonly FormPart[] = [
    {
      name: 'plan',
      title: 'Plan',
      kind: 'choice',
      options: [['', 'None'], ...plans.map(({ id, name }) => [id, name] as const)],
    },
    limitFields(Object.keys(limits), emptyText, 'plan'),
  ];
  const weight: FormField = {
    name: 'weight',
    title: 'Weight',
    hint: 'share of an origin; empty = that of the plan',
    kind: 'number',
    input: { min: LEAST },
  };
  return [
    NAME,
    ...(tenant === null ? [newId('; empty = the server chooses one', false)] : []),
    ...(bills ? money : []),
    {
      summary: 'Dialect, share, names of models',
      fields: [
        {
          name: 'dialect',
          title: 'Dialect',
          kind: 'choice',
          options: DIALECT_NAMES.map((name) => [name, name] as const),
          initial: 'openai',
        },
        ...(bills ? [weight] : []),
        ...FLAGS,
        {
          name: 'aliases',
          title: 'Names for models',
          hint: 'one pair per line: name: model',
          kind: 'changedPairs',
        },
      ],
    },
  ] satisfies readonly FormPart[];
}
