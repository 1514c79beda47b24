import { intersect } from '../automaton/boolean.ts';
import { determinize } from '../automaton/determinize.ts';
import { type Dfa, trim } from '../automaton/dfa.ts';
import { Nfa } from '../automaton/nfa.ts';
import { choice, type Expression, sequence, text } from '../expression.ts';
import type { WorkBudget } from '../work-budget.ts';
import { type Decimal, decimalOf, negate, placesOf } from './decimal.ts';
import { schemaError } from './schema-document.ts';
import { escapedExpression } from './string-language.ts';

/** What the number keywords of several schemas say together. */
export interface NumberFacts {
  readonly integer: boolean;
  readonly minimum: Bound | null;
  readonly maximum: Bound | null;
  /** Values of multipleOf with their places. */
  readonly multiples: readonly { readonly value: number; readonly path: string }[];
}

export interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

/** Digits of a number in all. Decimals of up to 15 digits are all different as doubles, so no bound is blurred. */
const MAX_DIGITS = 15;
const MAX_MULTIPLE = 100_000;

/**
 * Numbers within bounds: an optional minus, digits without leading zeros, and unless only integers are wanted an
 * optional point with digits; no exponent, no minus before zero.
 */
export function boundedNumber(facts: NumberFacts, budget: WorkBudget): Expression {
  const step = commonMultiple(facts);
  const wholeOnly = facts.integer || step !== null;
  const magnitudes = (from: Magnitude | null, to: Magnitude | null): Expression => {
    const dfa = magnitudeAutomaton(from, to, wholeOnly, budget);
    return escapedExpression(step === null ? dfa : intersect(dfa, multiplesOf(step, budget), budget));
  };
  const zero: Magnitude = { whole: '', fraction: '', exclusive: true };
  const minimum = facts.minimum && apart(facts.minimum, 1);
  const maximum = facts.maximum && apart(facts.maximum, -1);
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

/** Of longer numbers some read back as an excluded bound itself: there the next double is the bound. */
function apart(bound: Bound, direction: 1 | -1): Bound {
  if (!bound.exclusive || Math.abs(bound.value) < 10 ** MAX_DIGITS) return bound;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, bound.value);
  view.setBigInt64(0, view.getBigInt64(0) + BigInt(direction * Math.sign(bound.value)));
  const value = view.getFloat64(0);
  return Number.isFinite(value) ? { value, exclusive: false } : bound;
}

interface Magnitude {
  readonly whole: string;
  readonly fraction: string;
  readonly exclusive: boolean;
}

function magnitude(value: Decimal, exclusive: boolean): Magnitude {
  return { ...placesOf(value), exclusive };
}

/** The least common multiple of all multipleOf; null when there is none. */
function commonMultiple(facts: NumberFacts): number | null {
  let result: number | null = null;
  for (const { value, path } of facts.multiples) {
    if (!Number.isInteger(value)) throw schemaError(path, 'only integers are supported');
    result = result === null ? value : (result * value) / greatestCommonDivisor(result, value);
    if (result > MAX_MULTIPLE) throw schemaError(path, `only values up to ${MAX_MULTIPLE} are supported`);
  }
  return result;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

const DIGIT_0 = 0x30;
const POINT = 0x2e;

/** Whole numbers divisible by `step`: one state per remainder. */
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

/** How the digits read so far compare with the same digits of a bound. */
type Order = -1 | 0 | 1;

interface Progress {
  readonly low: Order;
  readonly high: Order;
  /** Digits read, and after the point or not. */
  readonly count: number;
  readonly fraction: boolean;
}

/** Magnitudes between two bounds (null = open), canonical digits, for each length of the whole part apart. */
function magnitudeAutomaton(
  low: Magnitude | null,
  high: Magnitude | null,
  wholeOnly: boolean,
  budget: WorkBudget,
): Dfa {
  const nfa = new Nfa(budget);
  const longest = Math.max(MAX_DIGITS, (low?.whole.length ?? 0) + 1);
  for (
    let length = 1;
    length <= Math.min(longest, high ? Math.max(1, high.whole.length) : longest);
    length++
  ) {
    new MagnitudeBuilder(nfa, length, low, high, wholeOnly).build();
  }
  const dfa = determinize(nfa, { budget, maxStates: Number.POSITIVE_INFINITY, nonEmpty: true })!;
  return trim(dfa);
}

function isSame(a: Progress, b: Progress): boolean {
  return a.low === b.low && a.high === b.high;
}

/** Adds the magnitudes whose whole part has a given number of digits. */
class MagnitudeBuilder {
  readonly #nfa: Nfa;
  readonly #length: number;
  readonly #low: Magnitude | null;
  readonly #high: Magnitude | null;
  readonly #wholeOnly: boolean;
  readonly #states = new Map<string, number>();

  constructor(nfa: Nfa, length: number, low: Magnitude | null, high: Magnitude | null, wholeOnly: boolean) {
    this.#nfa = nfa;
    this.#length = length;
    this.#low = low;
    this.#high = high;
    this.#wholeOnly = wholeOnly;
  }

  build(): void {
    this.#visit(this.#nfa.start, { low: 0, high: 0, count: 0, fraction: false });
  }

  #visit(state: number, at: Progress): void {
    const wholeDone = at.fraction || at.count === this.#length;
    if (wholeDone && (!at.fraction || at.count > this.#length) && this.#within(at))
      this.#nfa.addEpsilon(state, this.#nfa.end);
    if (wholeDone && !at.fraction && !this.#wholeOnly && this.#length < MAX_DIGITS) {
      this.#nfa.addEdge(state, POINT, POINT, this.#state({ ...at, fraction: true }));
    }
    if (wholeDone && (!at.fraction || at.count >= MAX_DIGITS)) return;
    for (let digit = at.count === 0 && this.#length > 1 ? 1 : 0; digit <= 9; ) {
      const next = this.#after(at, digit);
      // Digits that leave the comparison in the same state share an edge.
      let last = digit;
      while (last < 9 && isSame(next, this.#after(at, last + 1))) last++;
      const isWithin = !(this.#low && next.low < 0) && !(this.#high && next.high > 0);
      if (isWithin) this.#nfa.addEdge(state, DIGIT_0 + digit, DIGIT_0 + last, this.#state(next));
      digit = last + 1;
    }
  }

  #after(at: Progress, digit: number): Progress {
    return {
      ...at,
      low: this.#compare(at.low, digit, this.#low, at),
      high: this.#compare(at.high, digit, this.#high, at),
      count: at.count + 1,
    };
  }

  #state(at: Progress): number {
    const key = `${at.low},${at.high},${at.count},${at.fraction}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      state = this.#nfa.addState();
      this.#states.set(key, state);
      this.#visit(state, at);
    }
    return state;
  }

  #compare(order: Order, digit: number, bound: Magnitude | null, at: Progress): Order {
    if (order !== 0 || bound === null) return order;
    const expected = at.fraction
      ? Number(bound.fraction[at.count - this.#length] ?? 0)
      : Number(bound.whole.padStart(this.#length, '0')[at.count]);
    // A bound with more digits before the point is larger than any number of this length.
    if (!at.fraction && bound.whole.length > this.#length) return -1;
    return digit < expected ? -1 : digit > expected ? 1 : 0;
  }

  /** The number that ends here lies within the bounds. */
  #within(at: Progress): boolean {
    const ended = (order: Order, bound: Magnitude): Order => {
      const rest = bound.fraction.slice(at.fraction ? at.count - this.#length : 0);
      return order === 0 && rest !== '' ? -1 : order;
    };
    const low = this.#low === null ? 1 : ended(at.low, this.#low);
    const high = this.#high === null ? -1 : ended(at.high, this.#high);
    return (
      (low > 0 || (low === 0 && !this.#low!.exclusive)) &&
      (high < 0 || (high === 0 && !this.#high!.exclusive))
    );
  }
}
