import { type Account, askJson } from '../account.ts';
import { isMoney } from '../formats.ts';
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

const PAGE = 1_000;

/** Returns all keys of the account. */
export async function listKeys(account: Account, signal: AbortSignal): Promise<readonly KeyObject[]> {
  const keys: KeyObject[] = [];
  for (;;) {
    const query = new URLSearchParams({ limit: String(PAGE), after: keys.at(-1)?.id ?? '' });
    const page = await askJson<{ data: KeyObject[]; has_more: boolean }>(account, `/v1/keys?${query}`, {
      signal,
    });
    keys.push(...page.data);
    if (!page.has_more) return keys;
  }
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
  /** By name, in the unit of the field; '' = none. */
  readonly limits: Readonly<Record<string, string>>;
}

const MICROS = 1_000_000;

/** Returns the fields of a key; those of a new one if it is null. */
export function draftOf(key: KeyObject | null): KeyDraft {
  const set = Object.entries(key?.limits ?? {}).filter(
    (entry): entry is [string, number] => entry[1] !== null,
  );
  return {
    name: key?.name ?? '',
    scopes: key?.scopes.join(',') ?? 'completions,models',
    models: key?.models?.join('\n') ?? '',
    expires: key?.expires_at == null ? '' : new Date(key.expires_at * 1000).toISOString().slice(0, 16),
    networks: key?.allowed_addresses?.join('\n') ?? '',
    metadata: Object.entries(key?.metadata ?? {})
      .map(([name, value]) => pairLine(name, value))
      .join('\n'),
    limits: Object.fromEntries(
      set.map(([name, limit]) => [name, String(isMoney(name) ? limit / MICROS : limit)]),
    ),
  };
}

const lines = (text: string): string[] | null => {
  const all = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return all.length === 0 ? null : all;
};

type Pair = readonly [name: string, value: string];

function plainPair(line: string): Pair {
  const [, name = line, value = ''] = /^([^:]*):\s*(.*)$/.exec(line) ?? [];
  return [name.trim(), value];
}

/** A line that begins with a quote is read as JSON, if it is JSON. */
function pairOf(line: string): Pair {
  try {
    const [pair] = line.startsWith('"') ? Object.entries<unknown>(JSON.parse(`{${line}}`)) : [];
    if (typeof pair?.[1] === 'string') return [pair[0], pair[1]];
  } catch {
    // A plain pair may begin with a quote.
  }
  return plainPair(line);
}

/** Returns the line of a pair: plain, or in JSON where the plain one would be read as another pair. */
function pairLine(name: string, value: string): string {
  const line = `${name}: ${value}`;
  const read = lines(line)?.map(pairOf) ?? [];
  const isPlain = read.length === 1 && read[0]![0] === name && read[0]![1] === value;
  return isPlain ? line : `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
}

function pairs(text: string): Record<string, string> | null {
  const all = lines(text);
  return all && Object.fromEntries(all.map(pairOf));
}

const limitOf = (name: string, text: string): number | null => {
  if (text === '') return null;
  return isMoney(name) ? Math.round(Number(text) * MICROS) : Number(text);
};

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
  limits: Object.fromEntries(
    Object.entries(draft.limits)
      .map(([name, text]) => [name, limitOf(name, text)] as const)
      .filter(([, limit]) => limit !== null),
  ),
});

/** Returns the settings that the fields change; what was not touched is not sent. */
export function keyPatch(draft: KeyDraft, before: KeyDraft): Record<string, unknown> {
  const [next, last] = [settingsOf(draft), settingsOf(before)];
  const changed = Object.entries(next).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(last[name as keyof typeof last]),
  );
  const limits = Object.entries(draft.limits).filter(([name, text]) => text !== (before.limits[name] ?? ''));
  return {
    ...Object.fromEntries(changed),
    ...(limits.length > 0 && {
      limits: Object.fromEntries(limits.map(([name, text]) => [name, limitOf(name, text)])),
    }),
  };
}
