import { type Dfa, intersect } from '../automaton/dfa.ts';
import { choice, type Expression, sequence, text } from '../expression.ts';
import { schemaError } from '../grammar-error.ts';
import type { WorkBudget } from '../work-budget.ts';
import type { Bound, NumberAssertions } from './assertions.ts';
import { type Decimal, decimalOf, decimalParts, negate } from './decimal.ts';
import { escapedExpression } from './escaped-string.ts';
import { DIGIT_0, MAX_DIGITS, type Magnitude, magnitudeAutomaton } from './magnitude-automaton.ts';

const MAX_MULTIPLE = 100_000;

/**
 * Numbers within bounds: optional minus, digits without leading zeros, and an optional fraction unless only integers
 * are allowed. No exponent and no negative zero.
 */
export function numberExpression(assertions: NumberAssertions, budget: WorkBudget): Expression {
  const step = commonMultiple(assertions);
  const wholeOnly = assertions.integer || step !== null;
  const magnitudes = (from: Magnitude | null, to: Magnitude | null): Expression => {
    const dfa = magnitudeAutomaton({ low: from, high: to, wholeOnly }, budget);
    return escapedExpression(step === null ? dfa : intersect(dfa, multiplesOf(step, budget), budget));
  };
  const zero: Magnitude = { whole: '', fraction: '', exclusive: true };
  const minimum = assertions.minimum && nextInside(assertions.minimum, 1);
  const maximum = assertions.maximum && nextInside(assertions.maximum, -1);
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

function magnitude(value: Decimal, exclusive: boolean): Magnitude {
  return { ...decimalParts(value), exclusive };
}

/** The least common multiple of all `multipleOf`; null if there is none. */
function commonMultiple(assertions: NumberAssertions): number | null {
  let result: number | null = null;
  for (const { value, path } of assertions.multiples) {
    if (!Number.isInteger(value)) throw schemaError(path, `must be an integer, received ${value}`);
    result = result === null ? value : (result * value) / greatestCommonDivisor(result, value);
    if (result > MAX_MULTIPLE)
      throw schemaError(path, `the least common multiple of all multipleOf must be at most ${MAX_MULTIPLE}`);
  }
  return result;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Integers divisible by `step`: one state per remainder. */
function multiplesOf(step: number, budget: WorkBudget): Dfa {
  budget.spend(30 * step);
  const edges = Array.from({ length: step }, (_, remainder) => {
    const out: number[] = [];
    for (let digit = 0; digit <= 9; digit++) {
      out.push(DIGIT_0 + digit, DIGIT_0 + digit, (remainder * 10 + digit) % step);
    }
    return out;
  });
  return { edges, final: Uint8Array.from(edges, (_, remainder) => (remainder === 0 ? 1 : 0)) };
}
