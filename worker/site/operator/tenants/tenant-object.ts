import {
  changedFields,
  changedLimits,
  type LimitTexts,
  limitTexts,
} from '../../account/form/limit-fields.tsx';
import { pairLines, pairs } from '../../account/form/pairs.ts';

type Limits = Readonly<Record<string, number | null>>;

/** What the admin API says of a plan, as far as it is shown. */
export interface PlanObject {
  readonly id: string;
  readonly name: string;
  readonly limits: Limits;
  readonly weight: number;
  /** Unix seconds. */
  readonly created_at: number;
}

/** What the admin API says of a tenant. */
export interface TenantObject {
  readonly id: string;
  readonly name: string;
  /** Id; null = none. */
  readonly plan: string | null;
  /** Null = no limit; absent = that of the plan. */
  readonly limits: Limits;
  /** Null = that of the plan. */
  readonly weight: number | null;
  readonly dialect: string;
  readonly open_objects: boolean;
  readonly any_key_order: boolean;
  readonly wait_for_tokens: boolean;
  readonly aliases: Readonly<Record<string, string>>;
  readonly suspended: boolean;
  /** Unix seconds. */
  readonly created_at: number;
}

export const FLAGS = ['wait_for_tokens', 'open_objects', 'any_key_order'] as const;

/** What the form of a tenant has in its fields. */
export interface TenantDraft extends Pick<TenantObject, 'name' | 'dialect' | (typeof FLAGS)[number]> {
  /** '' = the server chooses one. */
  readonly id: string;
  /** '' = none. */
  readonly plan: string;
  /** '' = that of the plan. */
  readonly weight: string;
  readonly limits: LimitTexts;
  /** `name: model` per line. */
  readonly aliases: string;
}

/** Returns the fields of a tenant; those of a new one if it is null. */
export const draftOf = (tenant: TenantObject | null): TenantDraft => ({
  id: tenant?.id ?? '',
  name: tenant?.name ?? '',
  plan: tenant?.plan ?? '',
  weight: String(tenant?.weight ?? ''),
  dialect: tenant?.dialect ?? 'openai',
  open_objects: tenant?.open_objects ?? false,
  any_key_order: tenant?.any_key_order ?? false,
  wait_for_tokens: tenant?.wait_for_tokens ?? false,
  limits: limitTexts(tenant?.limits ?? {}),
  aliases: pairLines(tenant?.aliases ?? {}),
});

const settingsOf = ({ id: _, plan, weight, limits: __, aliases: ___, ...rest }: TenantDraft) => ({
  ...rest,
  plan: plan === '' ? null : plan,
  weight: weight === '' ? null : Number(weight),
});

/** Returns the body that makes a tenant of the fields. */
export const newTenantBody = (draft: TenantDraft) => ({
  ...settingsOf(draft),
  ...(draft.id !== '' && { id: draft.id }),
  limits: changedLimits(draft.limits, {}, null),
  aliases: pairs(draft.aliases) ?? {},
});

/** Returns the settings that the fields change; an emptied limit is that of the plan again. */
export function tenantPatch(draft: TenantDraft, before: TenantDraft): Record<string, unknown> {
  const limits = changedLimits(draft.limits, before.limits, 'plan');
  const [next, last] = [pairs(draft.aliases) ?? {}, pairs(before.aliases) ?? {}];
  const removed = Object.keys(last).filter((name) => !(name in next));
  const aliases = {
    ...changedFields(next, last),
    ...Object.fromEntries(removed.map((name) => [name, null])),
  };
  return {
    ...changedFields(settingsOf(draft), settingsOf(before)),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(Object.keys(aliases).length > 0 && { aliases }),
  };
}
