import { type Dfa, intersect } from '../automaton/dfa.ts';
import { choice, type Expression, sequence, text } from '../expression.ts';
import { schemaError } from '../grammar-error.ts';
import type { WorkBudget } from '../work-budget.ts';
import type { Bound, Multiple, NumberAssertions } from './assertions.ts';
import { type Decimal, decimalOf, decimalParts, negate } from './decimal.ts';
import { escapedExpression } from './escaped-string.ts';
import { DIGIT_0, MAX_DIGITS, type Magnitude, magnitudeAutomaton, POINT } from './magnitude-automaton.ts';

const MAX_MULTIPLE = 100_000;

/**
 * Numbers within bounds: optional minus, digits without leading zeros, and an optional fraction unless only integers
 * are allowed. No exponent and no negative zero.
 */
export function numberExpression(assertions: NumberAssertions, budget: WorkBudget): Expression {
  const { multiples, nonMultiples } = assertions;
  const wholeOnly = assertions.integer || multiples.some(({ value }) => Number.isInteger(value));
  const steps = multiples.length + nonMultiples.length === 0 ? null : stepsOf(assertions, wholeOnly, budget);
  const magnitudes = (from: Magnitude | null, to: Magnitude | null): Expression => {
    const dfa = magnitudeAutomaton({ low: from, high: to, wholeOnly }, budget);
    return escapedExpression(steps === null ? dfa : intersect(dfa, steps, budget));
  };
  const zero: Magnitude = { whole: '', fraction: '', exclusive: true };
  const minimum = assertions.minimum && nextInside(assertions.minimum, 1);
  const maximum = assertions.maximum && nextInside(assertions.maximum, -1);
  const low = minimum && { ...minimum, decimal: boundOf(minimum.value) };
  const high = maximum && { ...maximum, decimal: boundOf(maximum.value) };
  const parts: Expression[] = [];
  if (!high?.decimal.negative) {
    const from = low?.decimal.negative === false ? magnitude(low.decimal, low.exclusive) : null;
    parts.push(magnitudes(from, high && magnitude(high.decimal, high.exclusive)));
  }
  if (!low || low.decimal.negative) {
    const from = high?.decimal.negative ? magnitude(negate(high.decimal), high.exclusive) : zero;
    parts.push(sequence(text('-'), magnitudes(from, low && magnitude(negate(low.decimal), low.exclusive))));
  }
  return choice(parts);
}

/**
 * Moves an excluded bound of more than 15 digits to the next double. Some longer numbers would read back as the
 * excluded bound itself.
 */
function nextInside(bound: Bound, direction: 1 | -1): Bound {
  if (!bound.exclusive || Math.abs(bound.value) < 10 ** MAX_DIGITS) return bound;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, bound.value);
  view.setBigInt64(0, view.getBigInt64(0) + BigInt(direction * Math.sign(bound.value)));
  const value = view.getFloat64(0);
  return Number.isFinite(value) ? { value, exclusive: false } : bound;
}

/** A bound of 2⁶³ was 2⁶³ − 1 before JSON.parse rounded it. JavaScript prints the last digits of such integers as zeros. */
function boundOf(value: number): Decimal {
  if (!Number.isInteger(value)) return decimalOf(value);
  return decimalOf(BigInt(value) - (value === 2 ** 63 ? 1n : 0n));
}

function magnitude(value: Decimal, exclusive: boolean): Magnitude {
  return { ...decimalParts(value), exclusive };
}

/** The least common multiple of steps in units of the last of `places` decimal places. */
function commonMultiple(units: readonly number[], places: number, listed: readonly Multiple[]): number {
  return units.reduce((result, unit, i) => {
    const common = (result * unit) / greatestCommonDivisor(result, unit);
    if (common * (places + 1) > MAX_MULTIPLE)
      throw schemaError(
        listed[i]!.path,
        `the least common multiple of all multipleOf may have at most ${MAX_MULTIPLE} steps`,
      );
    return common;
  }, 1);
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * Numbers that are multiples of some steps and not of others: a state per remainder before the point, and per remainder and
 * place after it. The remainder is that of the least common multiple, in units of the last place.
 */
function stepsOf({ multiples, nonMultiples }: NumberAssertions, wholeOnly: boolean, budget: WorkBudget): Dfa {
  const listed = [...multiples, ...nonMultiples];
  const decimals = listed.map(({ value }) => decimalOf(value));
  const isOpen = multiples.length === 0 && !wholeOnly;
  // With a place after the point, 2.00 counts as a multiple of 1.
  const places = Math.max(isOpen ? 1 : 0, ...decimals.map(({ digits, point }) => digits.length - point));
  const units = decimals.map(({ digits, point }) => Number(digits.padEnd(point + places, '0')));
  const value = commonMultiple(units, places, listed);
  budget.spend(30 * value * (places + 2));
  const state = (remainder: number, fraction: number): number => (fraction + 1) * value + remainder;
  const whole = Array.from({ length: value }, (_, remainder) => [
    ...(places === 0 ? [] : [POINT, POINT, state(remainder, 0)]),
    ...digits(remainder, value, (next) => next),
  ]);
  /** A number with digits beyond the last place is no multiple. */
  const free = isOpen ? [DIGIT_0 + 1, DIGIT_0 + 9, state(0, places + 1)] : [];
  const fractions = Array.from({ length: places === 0 ? 0 : places + 1 }, (_, fraction) =>
    Array.from({ length: value }, (__, remainder) =>
      fraction < places
        ? digits(remainder, value, (next) => state(next, fraction + 1))
        : // Zeros may follow the last place.
          [DIGIT_0, DIGIT_0, state(remainder, places), ...free],
    ),
  );
  const isAllowed = (remainder: number, missing: number): boolean =>
    missing === 0
      ? units.every((unit, i) => (remainder % unit === 0) === i < multiples.length)
      : isAllowed((remainder * 10) % value, missing - 1);
  /** Whether the number may end, by digits after the point; −1 = no point. */
  const finals = (fraction: number): number[] =>
    Array.from({ length: value }, (_, remainder) =>
      fraction !== 0 && isAllowed(remainder, places - Math.max(0, fraction)) ? 1 : 0,
    );
  const final = [...finals(-1), ...fractions.flatMap((_, fraction) => finals(fraction)), 1];
  const afterFree = [DIGIT_0, DIGIT_0 + 9, state(0, places + 1)];
  return { edges: [...whole, ...fractions.flat(), afterFree], final: Uint8Array.from(final) };
}

/** The edges of the ten digits after a remainder. */
function digits(remainder: number, value: number, state: (remainder: number) => number): number[] {
  return Array.from({ length: 10 }, (_, digit) => [
    DIGIT_0 + digit,
    DIGIT_0 + digit,
    state((remainder * 10 + digit) % value),
  ]).flat();
}
