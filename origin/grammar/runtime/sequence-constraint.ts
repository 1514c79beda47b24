import type { Constraint } from '../constraint.ts';
import type { GrammarRuntime, Position } from './grammar-runtime.ts';
import { ACCEPTING } from './state-table.ts';
import { StepBudget } from './step-budget.ts';

/** The constraint of one sequence: a position in its grammar. */
export class SequenceConstraint implements Constraint {
  readonly #grammar: GrammarRuntime;
  readonly #budget: StepBudget;
  #position: Position;

  constructor(grammar: GrammarRuntime, start: Position) {
    this.#grammar = grammar;
    this.#budget = new StepBudget(grammar.vocabulary.tokens.vocabularySize);
    this.#position = start;
  }

  get accepting(): boolean {
    return isAccepting(this.#position);
  }

  mask(): Uint32Array {
    return this.#budget.guard((budget) => {
      this.#position = this.#grammar.current(this.#position, budget);
      return this.#grammar.mask(this.#position, budget);
    });
  }

  accept(token: number): void {
    this.#position = this.#budget.guard((budget) =>
      this.#grammar.advance(this.#grammar.current(this.#position, budget), token, budget),
    );
  }
}

function isAccepting({ table, state }: Position): boolean {
  return (table.flags.data[state]! & ACCEPTING) !== 0;
}
