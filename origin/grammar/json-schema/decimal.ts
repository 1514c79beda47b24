/** A decimal number: (negative ? −1 : 1) × 0.digits × 10^point. Zero has no digits. */
export interface Decimal {
  readonly negative: boolean;
  /** Without leading and trailing zeros. */
  readonly digits: string;
  /** Number of digits before the decimal point, appended zeros included; may be negative. */
  readonly point: number;
}

/** The shortest decimal that reads back as the same number, as JavaScript prints it. */
export function decimalOf(value: number | bigint): Decimal {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  const whole = match[2]!;
  const all = whole + (match[3] ?? '');
  const leading = /^0*/.exec(all)![0].length;
  const digits = all.slice(leading).replace(/0+$/, '');
  if (digits === '') return { negative: false, digits, point: 0 };
  return { negative: match[1] === '-', digits, point: whole.length - leading + Number(match[4] ?? 0) };
}

export function negate(value: Decimal): Decimal {
  return value.digits === '' ? value : { ...value, negative: !value.negative };
}

/** The digits of |value| before the point, without leading zeros ('' below 1), and after it. */
export function decimalParts({ digits, point }: Decimal): { whole: string; fraction: string } {
  if (point <= 0) return { whole: '', fraction: digits === '' ? '' : '0'.repeat(-point) + digits };
  return { whole: digits.slice(0, point).padEnd(point, '0'), fraction: digits.slice(point) };
}

/** Whether `value` is a multiple of `of`. Exact, unlike division: 0.3 is three times 0.1. */
export function isMultipleOf(value: Decimal, of: Decimal): boolean {
  const last = Math.min(lastPlace(value), lastPlace(of));
  return inUnits(value, last) % inUnits(of, last) === 0n;
}

/** Power of ten of the last digit. */
function lastPlace({ digits, point }: Decimal): number {
  return point - digits.length;
}

/** |value| ÷ 10^place, an integer. */
function inUnits(value: Decimal, place: number): bigint {
  return BigInt(value.digits) * 10n ** BigInt(lastPlace(value) - place);
}

/**
 * Whether the number is exactly what the schema's text says. False for integers that a double may have rounded;
 * integers of up to 15 digits are exact.
 */
export function isExact(value: number): boolean {
  return !Number.isInteger(value) || Number.isSafeInteger(value) || decimalOf(value).digits.length <= 15;
}
