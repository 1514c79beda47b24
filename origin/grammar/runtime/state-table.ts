import type { WorkBudget, WorkPiece } from '../automaton/work-budget.ts';
import type { Program } from '../program/program.ts';
import { UNITS_PER_PARSER_STEP } from './constraint.ts';
import { PairSet } from './pair-set.ts';
import { Predictions, ProgramStates } from './program-states.ts';

/**
 * Row entry of a step that is not computed yet. The entry of a RETURNING state is its complement (~state).
 */
export const UNKNOWN = 0;
/** No continuation matches. */
export const DEAD = 1;
/** Origin of the root rule. If the root rule ends, the text is a complete match. */
const ROOT_ORIGIN = 2;
/** Origin that stands for any caller. It isolates a program state from its context. */
const ANY_CALLER = 3;
/** Smaller numbers are reserved and have no items. */
export const FIRST_STATE = 4;

/** Flag: the text so far is a complete match. */
export const ACCEPTING = 1;
/** Flag: a rule whose origin is ANY_CALLER may end here. */
export const RETURNING = 2;

/**
 * Numbers each parser state once. A state is a set of items (program state, origin); the origin is the parser
 * state in which the item's rule was called. It is an Earley set whose origins are states instead of text
 * positions. Equal situations thus share one state, and steps and masks are computed once per state. Correct
 * for every context-free grammar without empty rules, including left recursion and ambiguity.
 */
export class StateTable {
  readonly program: Program;
  readonly states: ProgramStates;
  readonly initial: number;
  /** Row entries, row-major [state × byte class]. */
  readonly rows = new GrowableInt32(1 << 14);
  readonly flags = new GrowableInt32();
  readonly #itemOffsets = new GrowableInt32();
  readonly #items = new GrowableInt32(1 << 12);
  #buckets = new Int32Array(1 << 10);
  readonly #predictions: Predictions;
  /** By origin and rule: items of the origin's callers after the call has returned. */
  readonly #returns = new Map<number, Int32Array>();
  readonly #reached = new PairSet();
  readonly #completed = new PairSet();

  constructor(program: Program) {
    this.program = program;
    this.states = new ProgramStates(program);
    this.#predictions = new Predictions(program, this.states);
    for (let state = 0; state < FIRST_STATE; state++) this.#append([], 0);
    this.initial = this.intern([program.ruleStart[0]!, ROOT_ORIGIN], program.matchesEmpty ? ACCEPTING : 0);
  }

  get size(): number {
    return this.flags.length;
  }

  get bytes(): number {
    const kept = 64 * this.#returns.size + this.#predictions.bytes;
    const words = this.rows.length + this.flags.length + this.#itemOffsets.length + this.#items.length;
    return this.states.bytes + kept + 4 * words;
  }

  /**
   * The items of a state: flat pairs of program state and origin. The view is valid until a state is added.
   */
  items(state: number): Int32Array {
    return this.#items.data.subarray(this.#itemOffsets.data[state]!, this.#itemOffsets.data[state + 1]!);
  }

  /** Returns the state after one byte. */
  next(state: number, byte: number, budget: WorkBudget): number {
    const byteClass = this.program.classOf[byte]!;
    const cached = this.rows.data[state * this.program.classCount + byteClass]!;
    const entry = cached === UNKNOWN ? this.step(state, byteClass, budget) : cached;
    return entry < 0 ? ~entry : entry;
  }

  /** Computes the row entry for one byte class. */
  step(state: number, byteClass: number, budget: WorkBudget): number {
    const { byteOffsets, byteEdges } = this.program;
    const piece = budget.piece(UNITS_PER_PARSER_STEP);
    this.#reset();
    const lastItem = this.#itemOffsets.data[state + 1]!;
    for (let item = this.#itemOffsets.data[state]!; item < lastItem; item += 2) {
      const q = this.#items.data[item]!;
      const origin = this.#items.data[item + 1]!;
      const first = byteOffsets[q] ?? 0;
      const end = this.states.isTabled(q) ? byteOffsets[q + 1]! : first;
      for (let i = first; i < end; i += 3) {
        if (byteEdges[i]! <= byteClass && byteClass <= byteEdges[i + 1]!) {
          this.#reached.add(byteEdges[i + 2]!, origin);
        }
      }
      const called = this.#predictions.of(q, budget).byClass[byteClass];
      if (called) for (const target of called) this.#reached.add(target, state);
      piece.spend(5 + end - first + 3 * (called?.length ?? 0));
    }
    const next = this.#completeAndIntern(budget, piece);
    const entry = (this.flags.data[next]! & RETURNING) === 0 ? next : ~next;
    this.rows.data[state * this.program.classCount + byteClass] = entry;
    return entry;
  }

  /** Whether the byte between two states began a rule whose items or keys must differ. */
  beginsDistinct(before: number, after: number): boolean {
    const items = this.items(after);
    const isDistinct = (q: number) => this.program.distinctRules.has(this.states.ruleOf(q));
    return items.some((q, i) => i % 2 === 0 && items[i + 1] === before && isDistinct(q));
  }

  /** The parser state of a program state without context; RETURNING where its rule ends. */
  withAnyCaller(programState: number): number {
    return this.intern([programState, ANY_CALLER], 0);
  }

  /** The state after the rule of an item has ended; DEAD if no caller continues. */
  afterReturn(rule: number, origin: number, budget: WorkBudget): number {
    const piece = budget.piece(UNITS_PER_PARSER_STEP);
    this.#reset();
    this.#complete(rule, origin, budget, piece);
    return this.#completeAndIntern(budget, piece);
  }

  /** The state that has the items and flags of all these states. */
  unite(states: readonly number[]): number {
    if (states.length === 1) return states[0]!;
    this.#reset();
    let flags = 0;
    for (const state of states) {
      flags |= this.flags.data[state]!;
      const items = this.items(state);
      for (let i = 0; i < items.length; i += 2) this.#reached.add(items[i]!, items[i + 1]!);
    }
    return this.intern(
      Array.from({ length: this.#reached.size }, (_, i) => [
        this.#reached.first[i]!,
        this.#reached.second[i]!,
      ]).flat(),
      flags,
    );
  }

  /** Returns the number of the state with these items (flat pairs in any order) and flags. */
  intern(items: readonly number[], flags: number): number {
    if (items.length === 0 && flags === 0) return DEAD;
    const sorted = sortPairs(items);
    for (
      let slot = hash(sorted, flags) & (this.#buckets.length - 1);
      ;
      slot = (slot + 1) & (this.#buckets.length - 1)
    ) {
      const candidate = this.#buckets[slot]!;
      if (candidate === 0) {
        const state = this.#append(sorted, flags);
        this.#buckets[slot] = state;
        if (2 * this.size > this.#buckets.length) this.#rehash();
        return state;
      }
      if (this.flags.data[candidate] === flags && this.#hasItems(candidate, sorted)) return candidate;
    }
  }

  #reset(): void {
    this.#reached.clear();
    this.#completed.clear();
  }

  /** Completes ended rules transitively, and interns the items that can continue. */
  #completeAndIntern(budget: WorkBudget, piece: WorkPiece): number {
    const reached = this.#reached;
    const items: number[] = [];
    for (let i = 0; i < reached.size; i++) {
      const q = reached.first[i]!;
      const origin = reached.second[i]!;
      if (this.states.isFinal(q)) this.#complete(this.states.ruleOf(q), origin, budget, piece);
      if (this.states.hasEdges(q)) items.push(q, origin);
    }
    // A new state needs a row, so the budget also limits memory.
    piece.spend(20 + this.program.classCount + 20 * reached.size + 10 * this.#completed.size);
    let flags = 0;
    for (const origin of this.#completed.second) {
      if (origin === ROOT_ORIGIN) flags |= ACCEPTING;
      else if (origin === ANY_CALLER) flags |= RETURNING;
    }
    return this.intern(items, flags);
  }

  #complete(rule: number, origin: number, budget: WorkBudget, piece: WorkPiece): void {
    if (!this.#completed.add(rule, origin) || origin < FIRST_STATE) return;
    const items = this.#returnItems(rule, origin, budget);
    for (let i = 0; i < items.length; i += 2) this.#reached.add(items[i]!, items[i + 1]!);
    piece.spend(items.length);
  }

  #returnItems(rule: number, origin: number, budget: WorkBudget): Int32Array {
    const key = origin * this.program.ruleStart.length + rule;
    const cached = this.#returns.get(key);
    if (cached) return cached;
    const completed: number[] = [];
    const end = this.#itemOffsets.data[origin + 1]!;
    for (let item = this.#itemOffsets.data[origin]!; item < end; item += 2) {
      const q = this.#items.data[item]!;
      for (const target of this.states.afterCall(q, rule))
        completed.push(target, this.#items.data[item + 1]!);
      for (const target of this.#predictions.of(q, budget).afterCall.get(rule) ?? [])
        completed.push(target, origin);
    }
    budget.piece(UNITS_PER_PARSER_STEP).spend(20 + 5 * completed.length);
    const items = Int32Array.from(completed);
    this.#returns.set(key, items);
    return items;
  }

  #append(items: readonly number[], flags: number): number {
    const state = this.flags.reserve(1);
    this.flags.data[state] = flags;
    const offset = this.#items.reserve(items.length);
    this.#items.data.set(items, offset);
    if (state === 0) this.#itemOffsets.reserve(1);
    this.#itemOffsets.reserve(1);
    this.#itemOffsets.data[state + 1] = offset + items.length;
    this.rows.reserve(this.program.classCount);
    return state;
  }

  #hasItems(state: number, items: readonly number[]): boolean {
    const from = this.#itemOffsets.data[state]!;
    if (this.#itemOffsets.data[state + 1]! - from !== items.length) return false;
    for (let i = 0; i < items.length; i++) if (this.#items.data[from + i] !== items[i]) return false;
    return true;
  }

  #rehash(): void {
    this.#buckets = new Int32Array(2 * this.#buckets.length);
    for (let state = FIRST_STATE; state < this.size; state++) {
      let slot = hash(this.items(state), this.flags.data[state]!) & (this.#buckets.length - 1);
      while (this.#buckets[slot] !== 0) slot = (slot + 1) & (this.#buckets.length - 1);
      this.#buckets[slot] = state;
    }
  }
}

function sortPairs(items: readonly number[]): readonly number[] {
  if (items.length <= 2) return items;
  const order: [number, number][] = [];
  for (let i = 0; i < items.length; i += 2) order.push([items[i]!, items[i + 1]!]);
  return order.sort((a, b) => a[0] - b[0] || a[1] - b[1]).flat();
}

/** FNV-1a over 32-bit words, with the high bits folded in. */
function hash(items: ArrayLike<number>, flags: number): number {
  let h = 0x811c9dc5 ^ flags;
  for (let i = 0; i < items.length; i++) h = Math.imul(h ^ items[i]!, 0x01000193);
  h ^= h >>> 15;
  h = Math.imul(h, 0x85ebca6b);
  return (h ^ (h >>> 13)) >>> 0;
}

/** An Int32Array that doubles when full. `data` is replaced then: read it again after every `reserve`. */
class GrowableInt32 {
  data: Int32Array;
  length = 0;

  constructor(capacity = 1024) {
    this.data = new Int32Array(capacity);
  }

  /** Appends `count` zeros and returns the index of the first. */
  reserve(count: number): number {
    const start = this.length;
    this.length += count;
    if (this.length > this.data.length) {
      const grown = new Int32Array(Math.max(this.length, 2 * this.data.length));
      grown.set(this.data);
      this.data = grown;
    }
    return start;
  }
}
