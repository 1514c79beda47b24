import { type Dfa, intersect, isEmptyLanguage } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { type Decimal, decimalOf, decimalParts, isIntegral, negate } from '../rules/decimal.ts';
import { choice, type Expression, sequence, text } from '../rules/expression.ts';
import { schemaError } from '../rules/grammar-error.ts';
import type { Multiple, NumberAssertions } from './assertions.ts';
import { escapedExpression } from './escaped-string.ts';
import { DIGIT_0, type Magnitude, magnitudeAutomaton, POINT, SAFE_DIGITS } from './magnitude-automaton.ts';

const MAX_MULTIPLE = 100_000;

/**
 * Numbers within bounds: optional minus, digits without leading zeros, and an optional fraction unless only
 * integers are allowed. No exponent and no negative zero.
 */
export function numberExpression(assertions: NumberAssertions, budget: WorkBudget): Expression {
  const { multiples, nonMultiples } = assertions;
  const wholeOnly = assertions.integer || multiples.some(({ value }) => isIntegral(value));
  const steps = multiples.length + nonMultiples.length === 0 ? null : stepsOf(assertions, wholeOnly, budget);
  const magnitudes = (from: Magnitude | null, to: Magnitude | null): Expression => {
    const dfa = rangeAutomaton(from, to, wholeOnly, budget);
    return escapedExpression(steps === null ? dfa : intersect(dfa, steps, budget));
  };
  const zero: Magnitude = { whole: '', fraction: '', exclusive: true };
  const { minimum, maximum } = assertions;
  const low = minimum && { ...minimum, decimal: decimalOf(minimum.value) };
  const high = maximum && { ...maximum, decimal: decimalOf(maximum.value) };
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

/** Numbers have more digits than doubles keep apart only if none with fewer lies between the bounds. */
function rangeAutomaton(
  low: Magnitude | null,
  high: Magnitude | null,
  wholeOnly: boolean,
  budget: WorkBudget,
): Dfa {
  const range = { low, high, wholeOnly };
  const dfa = magnitudeAutomaton({ ...range, maxDigits: SAFE_DIGITS }, budget);
  if (wholeOnly || low === null || high === null || !isEmptyLanguage(dfa)) return dfa;
  const maxDigits = 1 + Math.max(...[low, high].map(({ whole, fraction }) => whole.length + fraction.length));
  return maxDigits <= SAFE_DIGITS ? dfa : magnitudeAutomaton({ ...range, maxDigits }, budget);
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
 * Numbers that are multiples of some steps and not of others: a state per remainder before the point, and per
 * remainder and place after it. The remainder is that of the least common multiple, in units of the last
 * place.
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
