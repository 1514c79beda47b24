import { isRawNumber, type RawNumber } from '@continuo/shared/exact-numbers.ts';

/** A number of a JSON text. One that a double would round is kept as its text. */
export type JsonNumber = number | RawNumber;

export const isJsonNumber = (value: unknown): value is JsonNumber =>
  typeof value === 'number' || isRawNumber(value);

/** A decimal number: (negative ? −1 : 1) × 0.digits × 10^point. Zero has no digits. */
export interface Decimal {
  readonly negative: boolean;
  /** Without leading and trailing zeros. */
  readonly digits: string;
  /** Number of digits before the decimal point, appended zeros included; may be negative. */
  readonly point: number;
}

/** Numbers closer to zero count as this power of ten, which no generated number reaches either. */
const LEAST_POINT = -400;

/** Returns the digits of a text. A double stands for the shortest decimal that reads back the same. */
export function decimalOf(value: JsonNumber): Decimal {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(
    isRawNumber(value) ? value.rawJSON : String(value),
  )!;
  const whole = match[2]!;
  const all = whole + (match[3] ?? '');
  const leading = /^0*/.exec(all)![0].length;
  const digits = all.slice(leading).replace(/0+$/, '');
  if (digits === '') return { negative: false, digits, point: 0 };
  const point = Math.max(LEAST_POINT, whole.length - leading + Number(match[4] ?? 0));
  return { negative: match[1] === '-', digits, point };
}

export function negate(value: Decimal): Decimal {
  return value.digits === '' ? value : { ...value, negative: !value.negative };
}

/** The digits of |value| before the point, without leading zeros ('' below 1), and after it. */
export function decimalParts({ digits, point }: Decimal): { whole: string; fraction: string } {
  if (point <= 0) return { whole: '', fraction: digits === '' ? '' : '0'.repeat(-point) + digits };
  return { whole: digits.slice(0, point).padEnd(point, '0'), fraction: digits.slice(point) };
}

/** The number as JSON text without an exponent. */
export function decimalText(value: Decimal): string {
  const { whole, fraction } = decimalParts(value);
  return `${value.negative ? '-' : ''}${whole || '0'}${fraction && `.${fraction}`}`;
}

export const isIntegral = (value: JsonNumber): boolean =>
  typeof value === 'number' ? Number.isInteger(value) : lastPlace(decimalOf(value)) >= 0;

/** Returns a negative number if a < b, 0 if they are equal, and a positive number if a > b. */
export function compareNumbers(a: JsonNumber, b: JsonNumber): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [left, right] = [decimalOf(a), decimalOf(b)];
  const last = Math.min(lastPlace(left), lastPlace(right));
  const signed = (value: Decimal): bigint => (value.negative ? -1n : 1n) * inUnits(value, last);
  return Number(signed(left) - signed(right));
}

/** Whether `value` is a multiple of `of`. Exact, unlike division: 0.3 is three times 0.1. */
export function isMultipleOf(value: JsonNumber, of: JsonNumber): boolean {
  const [dividend, divisor] = [decimalOf(value), decimalOf(of)];
  const last = Math.min(lastPlace(dividend), lastPlace(divisor));
  return inUnits(dividend, last) % inUnits(divisor, last) === 0n;
}

/** Power of ten of the last digit. */
function lastPlace({ digits, point }: Decimal): number {
  return point - digits.length;
}

/** |value| ÷ 10^place, an integer. */
function inUnits(value: Decimal, place: number): bigint {
  return BigInt(value.digits) * 10n ** BigInt(lastPlace(value) - place);
}
