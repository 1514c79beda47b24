import { InvalidArgumentError } from 'commander';
import * as z from 'zod';
import { UNLIMITED } from '../../shared/tenant.ts';
import { toSnakeCase } from '../admin/casing.ts';
import { CommandError } from './api.ts';

export type LimitOption = Readonly<Record<string, number | 'plan' | null>>;

const LIMITS = Object.keys(toSnakeCase(UNLIMITED));

/** The names that a limit may have, for those who read the help. */
export const LIMIT_NAMES = `names: ${LIMITS.join(', ')}`;

/** `--limit requests_per_minute=60`, repeatable; `none` lifts the limit of the plan, `plan` returns to it. */
export function collectLimit(text: string, previous: LimitOption = {}): LimitOption {
  const [, name = '', value = ''] = /^([a-z_]+)=(\d+|none|plan)$/.exec(text) ?? [];
  if (name === '') throw new InvalidArgumentError('Write it as name=number, name=none or name=plan.');
  if (!LIMITS.includes(name)) throw new InvalidArgumentError(`There is no limit '${name}'; ${LIMIT_NAMES}.`);
  return { ...previous, [name]: value === 'none' ? null : value === 'plan' ? value : Number(value) };
}

/** `a,b` → ['a', 'b'] */
export const commaList = (text: string): string[] => text.split(',').map((part) => part.trim());

export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value))) throw new InvalidArgumentError('Expected a number above 0.');
  return value;
}

/** `90s`, `15m`, `24h`, `7d` → seconds */
export function duration(text: string): number {
  const match = /^(\d+)([smhd])$/.exec(text);
  if (!match) throw new InvalidArgumentError('Write it as 90s, 15m, 24h or 7d.');
  return Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as 's' | 'm' | 'h' | 'd'];
}

/** Date.parse alone takes the 31st of February for a day of March, and a time without a zone for one of here. */
const time = z.union([z.iso.date(), z.iso.datetime({ offset: true })]);

/** A date, which begins in UTC, or a time with its zone → Unix seconds */
export function instant(text: string): number {
  if (time.safeParse(text).success) return Math.floor(Date.parse(text) / 1000);
  throw new InvalidArgumentError(
    'Expected a date such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z.',
  );
}

/** Where one object is. @throws CommandError for what would be another path */
export function pathTo(kind: 'tenants' | 'keys' | 'plans', id: string): string {
  if (['', '.', '..'].includes(id)) throw new CommandError(`'${id}' is no id.`);
  return `/${kind}/${encodeURIComponent(id)}`;
}

/** Without the fields that were not given. */
export const given = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** `?a=1&b=2` of the fields that were given. */
export function queryOf(fields: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(given(fields) as Record<string, string>).toString();
  return query === '' ? '' : `?${query}`;
}
