import type { WorkBudget } from './work-budget.ts';

/** The first symbol above all code points. Symbol CALL + r stands for a match of rule r. */
export const CALL = 0x110000;

/** The targets of all states without epsilon edges, which most states are. */
const NONE: readonly number[] = [];

/**
 * A nondeterministic automaton over integer symbols: bytes or code points, and calls of rules. It has one
 * start and one end state. Edges carry inclusive symbol ranges.
 */
export class Nfa {
  /** Per state: flat triples lo, hi, target. */
  readonly edges: number[][] = [];
  /** Per state: targets of epsilon edges. */
  readonly epsilon: (readonly number[])[] = [];
  readonly start: number;
  readonly end: number;
  readonly #budget: WorkBudget;

  constructor(budget: WorkBudget) {
    this.#budget = budget;
    this.start = this.addState();
    this.end = this.addState();
  }

  get size(): number {
    return this.edges.length;
  }

  addState(): number {
    this.#budget.spend(10);
    this.epsilon.push(NONE);
    return this.edges.push([]) - 1;
  }

  addEdge(from: number, lo: number, hi: number, to: number): void {
    this.#budget.spend(3);
    this.edges[from]!.push(lo, hi, to);
  }

  addEpsilon(from: number, to: number): void {
    this.#budget.spend(3);
    const targets = this.epsilon[from]!;
    if (targets === NONE) this.epsilon[from] = [to];
    else (targets as number[]).push(to);
  }

  /** Adds `min` to `max` copies of a part in sequence. `addCopy` adds one copy between two states. */
  addRepeat(
    from: number,
    to: number,
    { min, max }: { readonly min: number; readonly max: number },
    addCopy: (from: number, to: number) => void,
  ): void {
    let state = this.addState();
    this.addEpsilon(from, state);
    const copies = Number.isFinite(max) ? max : min;
    for (let i = 0; i < copies; i++) {
      if (i >= min) this.addEpsilon(state, to);
      const next = this.addState();
      addCopy(state, next);
      state = next;
    }
    if (!Number.isFinite(max)) addCopy(state, state);
    this.addEpsilon(state, to);
  }

  /** The epsilon closure of `states`, sorted. */
  closure(states: readonly number[]): readonly number[] {
    if (states.length === 1 && this.epsilon[states[0]!]!.length === 0) return states;
    const seen = new Set(states);
    for (const state of seen) for (const next of this.epsilon[state]!) seen.add(next);
    this.#budget.spend(10 * seen.size);
    return [...seen].sort((a, b) => a - b);
  }
}
