import type { KeyObject, OwnKey } from '../api-objects.ts';

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
function isWithinOwn(key: KeyObject, ownKey: OwnKey): boolean {
  const { models, expires_at: end, allowed_addresses: networks } = ownKey;
  return (
    (models === null || (key.models?.every((model) => models.includes(model)) ?? false)) &&
    (end === null || (key.expires_at !== null && key.expires_at <= end)) &&
    (networks === null || key.allowed_addresses !== null) &&
    Object.entries(ownKey.limits).every(
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
export function rightsOf(key: KeyObject, ownKey: OwnKey, now: number): KeyRights {
  const isOpen = stateOf(key, now) !== 'ended';
  const isWithin = key.id === ownKey.id || isWithinOwn(key, ownKey);
  return {
    change: isOpen && isWithin && key.id !== ownKey.id,
    rotate: isOpen && isWithin && key.replaced_by === null,
    end: isOpen && key.id !== ownKey.id,
  };
}
