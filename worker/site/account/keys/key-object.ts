import { changedFields, changedLimits, type LimitTexts, limitTexts } from '../form/limit-fields.tsx';
import { lines, pairLines, pairs } from '../form/pairs.ts';
import type { OwnKey } from '../own-key.ts';

/** A key of the account, as far as it is shown. Times are Unix seconds. */
export interface KeyObject {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Null = all. */
  readonly models: readonly string[] | null;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly allowed_addresses: readonly string[] | null;
  readonly last_used_at: number | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly disabled: boolean;
  readonly revoked_at: number | null;
  readonly replaced_by: string | null;
}

/** The time at which a key ends; null = never. */
export const endOf = ({ revoked_at, expires_at }: KeyObject): number | null =>
  revoked_at !== null && expires_at !== null ? Math.min(revoked_at, expires_at) : (revoked_at ?? expires_at);

export type KeyState = 'active' | 'disabled' | 'ended';

/** @param now Unix seconds */
export function stateOf(key: KeyObject, now: number): KeyState {
  const end = endOf(key);
  if (end !== null && end <= now) return 'ended';
  return key.disabled ? 'disabled' : 'active';
}

/** Whether a key may at most what the own one may. Networks inside one another only the server compares. */
function isWithinOwn(key: KeyObject, own: OwnKey): boolean {
  const { models, expires_at: end, allowed_addresses: networks } = own;
  return (
    (models === null || (key.models?.every((model) => models.includes(model)) ?? false)) &&
    (end === null || (key.expires_at !== null && key.expires_at <= end)) &&
    (networks === null || key.allowed_addresses !== null) &&
    Object.entries(own.limits).every(
      ([name, most]) => most === null || (key.limits[name] ?? Infinity) <= most,
    )
  );
}

export interface KeyRights {
  readonly change: boolean;
  readonly rotate: boolean;
  /** Disable and delete. */
  readonly end: boolean;
}

/**
 * Returns what the own key may do with a key: it neither changes nor ends itself, and grants no more than it
 * has.
 */
export function rightsOf(key: KeyObject, own: OwnKey, now: number): KeyRights {
  const isOpen = stateOf(key, now) !== 'ended';
  const isWithin = key.id === own.id || isWithinOwn(key, own);
  return {
    change: isOpen && isWithin && key.id !== own.id,
    rotate: isOpen && isWithin && key.replaced_by === null,
    end: isOpen && key.id !== own.id,
  };
}

/** What the form of a key has in its fields. */
export interface KeyDraft {
  readonly name: string;
  readonly scopes: string;
  /** One per line; none = all. */
  readonly models: string;
  /** UTC, as YYYY-MM-DDTHH:MM; '' = never. */
  readonly expires: string;
  /** One per line; none = all. */
  readonly networks: string;
  /** `name: value` per line; unusual pairs in JSON. */
  readonly metadata: string;
  readonly limits: LimitTexts;
}

/** Returns the fields of a key; those of a new one if it is null. */
export const draftOf = (key: KeyObject | null): KeyDraft => ({
  name: key?.name ?? '',
  scopes: key?.scopes.join(',') ?? 'completions,models',
  models: key?.models?.join('\n') ?? '',
  expires: key?.expires_at == null ? '' : new Date(key.expires_at * 1000).toISOString().slice(0, 16),
  networks: key?.allowed_addresses?.join('\n') ?? '',
  metadata: pairLines(key?.metadata ?? {}),
  limits: limitTexts(key?.limits ?? {}),
});

/** Returns the settings of a key that the fields say. */
const settingsOf = (draft: KeyDraft) => ({
  name: draft.name,
  models: lines(draft.models),
  expires_at: draft.expires === '' ? null : Date.parse(`${draft.expires}Z`) / 1000,
  allowed_addresses: lines(draft.networks),
  metadata: pairs(draft.metadata),
});

/** Returns the body that makes a key of the fields. */
export const newKeyBody = (draft: KeyDraft) => ({
  ...settingsOf(draft),
  scopes: draft.scopes.split(','),
  limits: changedLimits(draft.limits, {}, null),
});

/** Returns the settings that the fields change; what was not touched is not sent. */
export function keyPatch(draft: KeyDraft, before: KeyDraft): Record<string, unknown> {
  const limits = changedLimits(draft.limits, before.limits, null);
  return {
    ...changedFields(settingsOf(draft), settingsOf(before)),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}
