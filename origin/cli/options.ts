import { CommandError, EXIT } from '@continuo/origin/terminal/program.ts';
import { toSnakeCase } from '@continuo/shared/field-names.ts';
import { limits } from '@continuo/shared/tenant.ts';
import { InvalidArgumentError } from 'commander';
import * as z from 'zod';

export type LimitOption = Readonly<Record<string, number | 'plan' | null>>;

const LIMIT_NAMES = Object.keys(toSnakeCase(limits.shape));

/** The limits' names, for the help. */
export const LIMIT_HELP = `names: ${LIMIT_NAMES.join(', ')}`;

/** Reads `--limit requests_per_minute=60`, repeatable. `none` removes the limit, `plan` follows the plan. */
export function collectLimit(text: string, previous: LimitOption = {}): LimitOption {
  const [, name = '', value = ''] = /^([a-z_]+)=(\d+|none|plan)$/.exec(text) ?? [];
  if (name === '') throw new InvalidArgumentError('Expected name=number, name=none or name=plan.');
  if (!LIMIT_NAMES.includes(name)) {
    throw new InvalidArgumentError(`There is no limit '${name}'; ${LIMIT_HELP}.`);
  }
  return { ...previous, [name]: value === 'none' ? null : value === 'plan' ? value : Number(value) };
}

export type AliasOption = Readonly<Record<string, string | null>>;

/** Reads `--alias davinci-002=org/tiny`, repeatable. `none` removes the name. */
export function collectAlias(text: string, previous: AliasOption = {}): AliasOption {
  const [, name = '', model = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === '') throw new InvalidArgumentError('Expected name=model or name=none.');
  return { ...previous, [name]: model === 'none' ? null : model };
}

export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value))) throw new InvalidArgumentError('Expected a number above 0.');
  return value;
}

/** `90s`, `15m`, `24h`, `7d` → seconds */
export function duration(text: string): number {
  const match = /^(\d+)([smhd])$/.exec(text);
  if (!match) throw new InvalidArgumentError('Expected a duration such as 90s, 15m, 24h or 7d.');
  return Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as 's' | 'm' | 'h' | 'd'];
}

/** Stricter than Date.parse, which accepts 31 February and times without a time zone. */
const time = z.union([z.iso.date(), z.iso.datetime({ offset: true })]);

/** A date (midnight UTC), or a time with its time zone → Unix seconds */
export function instant(text: string): number {
  if (time.safeParse(text).success) return Math.floor(Date.parse(text) / 1000);
  throw new InvalidArgumentError(
    'Expected a date such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z.',
  );
}

/** Returns the path of one object. @throws CommandError if the id would lead to another path */
export function pathTo(kind: 'tenants' | 'keys' | 'plans' | 'upstreams', id: string): string {
  if (['', '.', '..'].includes(id)) throw new CommandError(`'${id}' is not an id.`, EXIT.usage);
  return `/admin/v1/${kind}/${encodeURIComponent(id)}`;
}

/** Removes the fields that were not given. */
export const given = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Options that are parameters of the query as they are. */
export type Filter = Readonly<Record<string, string | undefined>>;

/** Returns the query of the given fields: `?a=1&b=2`. */
export function queryOf(fields: Filter): string {
  const query = new URLSearchParams(given(fields) as Record<string, string>).toString();
  return query === '' ? '' : `?${query}`;
}
