import { determinize } from '../automaton/determinize.ts';
import { type Dfa, trim } from '../automaton/dfa.ts';
import { Nfa } from '../automaton/nfa.ts';
import type { WorkBudget } from '../work-budget.ts';

/** Maximum digits of a number. Decimals of up to 15 digits differ as doubles, so bounds are exact. */
export const MAX_DIGITS = 15;
/** Maximum digits of an integer without upper bound: those of a 64-bit integer. */
const MAX_WHOLE_DIGITS = 19;

/** A bound on an absolute value: the digits before and after the decimal point. */
export interface Magnitude {
  readonly whole: string;
  readonly fraction: string;
  readonly exclusive: boolean;
}

/** A range of absolute values. A null bound is open. */
interface MagnitudeRange {
  readonly low: Magnitude | null;
  readonly high: Magnitude | null;
  /** Whether decimal points are excluded. */
  readonly wholeOnly: boolean;
}

export const DIGIT_0 = 0x30;
export const POINT = 0x2e;

/** Comparison of the digits so far with the same digits of a bound. */
type Order = -1 | 0 | 1;

interface Progress {
  readonly low: Order;
  readonly high: Order;
  /** Number of digits so far; `fraction`: the decimal point was read. */
  readonly count: number;
  readonly fraction: boolean;
}

/**
 * An automaton for absolute values within a range, in canonical digits. Each length of the integer part is built
 * separately.
 */
export function magnitudeAutomaton(range: MagnitudeRange, budget: WorkBudget): Dfa {
  const { low, high, wholeOnly } = range;
  const nfa = new Nfa(budget);
  const open = Math.max(wholeOnly ? MAX_WHOLE_DIGITS : MAX_DIGITS, (low?.whole.length ?? 0) + 1);
  const longest = high ? Math.min(open, Math.max(1, high.whole.length)) : open;
  for (let length = 1; length <= longest; length++) new MagnitudeBuilder(nfa, length, range).build();
  const dfa = determinize(nfa, { budget, maxStates: Number.POSITIVE_INFINITY, nonEmpty: true })!;
  return trim(dfa);
}

function isSame(a: Progress, b: Progress): boolean {
  return a.low === b.low && a.high === b.high;
}

/** Adds the absolute values whose integer part has a given number of digits. */
class MagnitudeBuilder {
  readonly #nfa: Nfa;
  readonly #length: number;
  readonly #range: MagnitudeRange;
  readonly #states = new Map<string, number>();

  constructor(nfa: Nfa, length: number, range: MagnitudeRange) {
    this.#nfa = nfa;
    this.#length = length;
    this.#range = range;
  }

  build(): void {
    this.#visit(this.#nfa.start, { low: 0, high: 0, count: 0, fraction: false });
  }

  #visit(state: number, at: Progress): void {
    const { low, high, wholeOnly } = this.#range;
    const wholeDone = at.fraction || at.count === this.#length;
    if (wholeDone && (!at.fraction || at.count > this.#length) && this.#within(at))
      this.#nfa.addEpsilon(state, this.#nfa.end);
    if (wholeDone && !at.fraction && !wholeOnly && this.#length < MAX_DIGITS) {
      this.#nfa.addEdge(state, POINT, POINT, this.#state({ ...at, fraction: true }));
    }
    if (wholeDone && (!at.fraction || at.count >= MAX_DIGITS)) return;
    for (let digit = at.count === 0 && this.#length > 1 ? 1 : 0; digit <= 9; ) {
      const next = this.#after(at, digit);
      // Digits with the same comparison result share an edge.
      let last = digit;
      while (last < 9 && isSame(next, this.#after(at, last + 1))) last++;
      const isWithin = !(low && next.low < 0) && !(high && next.high > 0);
      if (isWithin) this.#nfa.addEdge(state, DIGIT_0 + digit, DIGIT_0 + last, this.#state(next));
      digit = last + 1;
    }
  }

  #after(at: Progress, digit: number): Progress {
    return {
      ...at,
      low: this.#compare(at.low, digit, this.#range.low, at),
      high: this.#compare(at.high, digit, this.#range.high, at),
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
    // A bound with more digits before the point exceeds every number of this length.
    if (!at.fraction && bound.whole.length > this.#length) return -1;
    return digit < expected ? -1 : digit > expected ? 1 : 0;
  }

  /** Whether the number that ends here lies within the bounds. */
  #within(at: Progress): boolean {
    const ended = (order: Order, bound: Magnitude): Order => {
      const rest = bound.fraction.slice(at.fraction ? at.count - this.#length : 0);
      return order === 0 && rest !== '' ? -1 : order;
    };
    const { low, high } = this.#range;
    const fromLow = low === null ? 1 : ended(at.low, low);
    const fromHigh = high === null ? -1 : ended(at.high, high);
    return (
      (fromLow > 0 || (fromLow === 0 && !low?.exclusive)) &&
      (fromHigh < 0 || (fromHigh === 0 && !high?.exclusive))
    );
  }
}
