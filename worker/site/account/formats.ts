/** Numbers, amounts and times as people read them. Times are UTC, because limits and usage count UTC days. */

export const DAY_S = 86_400;

export const count = (value: number): string => value.toLocaleString('en');

const MICROS = 1_000_000;

/** Returns micro-units in units of the currency. */
export const units = (micros: number): number => micros / MICROS;

/** Returns an amount of the currency, which the server does not name. */
export const money = (micros: number): string =>
  units(micros).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 });

export const isMoney = (limit: string): boolean => limit.includes('micros');

/** Returns a limit as people name it, such as `Money per day`. */
export function limitName(limit: string): string {
  const [, user, soft, rest] = /^(user_)?(soft_)?(.*)$/.exec(limit)!;
  const words = rest!.replace('micros', 'money').replaceAll('_', ' ');
  return `${words[0]?.toUpperCase()}${words.slice(1)}${user ? ' of each end user' : ''}${soft ? ', alerts only' : ''}`;
}

export const amount = (limit: string, value: number): string =>
  isMoney(limit) ? money(value) : count(value);

/** Returns the unit of a limit that its name does not say; '' = it does. */
export const limitUnit = (limit: string): string => (isMoney(limit) ? 'in units of the currency' : '');

export const milliseconds = (value: number | null): string =>
  value === null ? '–' : `${count(Math.round(value))} ms`;

const utc = (options: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options });
const DAY = utc({ day: 'numeric', month: 'short', year: 'numeric' });
const MINUTE = utc({ hour: '2-digit', minute: '2-digit' });
const CLOCK = utc({ hour: '2-digit', minute: '2-digit', second: '2-digit' });

export const dayText = (day: string): string => DAY.format(Date.parse(day));
export const minuteText = (seconds: number): string => `${MINUTE.format(seconds * 1000)} UTC`;
export const clockText = (at: number): string => `${CLOCK.format(at)} UTC`;
export const dateText = (seconds: number): string => `${DAY.format(seconds * 1000)}, ${minuteText(seconds)}`;
/** For what happens many times in a minute. */
export const momentText = (seconds: number): string =>
  `${DAY.format(seconds * 1000)}, ${clockText(seconds * 1000)}`;

/** The UTC day of a time in Unix milliseconds, as YYYY-MM-DD. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Returns a time in its two largest units. */
export function duration(seconds: number): string {
  const rounded = Math.max(0, Math.round(seconds));
  const [days, hours] = [Math.floor(rounded / DAY_S), Math.floor(rounded / 3600) % 24];
  const [minutes, rest] = [Math.floor(rounded / 60) % 60, rounded % 60];
  if (days > 0) return hours === 0 || days > 9 ? `${days} d` : `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

/** Returns a time relative to the server's. Both in Unix seconds. */
export const relative = (seconds: number, now: number): string => {
  const ahead = seconds - now;
  if (Math.abs(ahead) < 1) return 'now';
  // Of the past, one unit tells enough.
  return ahead > 0 ? `in ${duration(ahead)}` : `${/^\d+ \w+/.exec(duration(-ahead))?.[0]} ago`;
};

/** Returns the seconds until a limit of a UTC day or month begins again; null for other limits. */
export function secondsToReset(limit: string, now: number): number | null {
  const date = new Date(now);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  if (limit.endsWith('_per_day')) return (Date.UTC(year, month, day + 1) - now) / 1000;
  if (limit.endsWith('_per_month')) return (Date.UTC(year, month + 1) - now) / 1000;
  return null;
}
