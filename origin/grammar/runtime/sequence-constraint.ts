import type { Constraint } from '../constraint.ts';
import type { GrammarRuntime, Position } from './grammar-runtime.ts';
import { ACCEPTING } from './state-table.ts';
import { StepBudget } from './step-budget.ts';

/** Longest run of forced tokens told at once. */
const MAX_FORCED = 64;

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

  /**
   * Tokens are forced only one at a time: where the mask holds a single token and the text may not end. A forced
   * text that can be cut into tokens in several ways forces nothing, because which cut the model would choose is
   * part of its distribution.
   */
  forced(): readonly number[] {
    return this.#budget.guard((budget) => {
      this.#position = this.#grammar.current(this.#position, budget);
      const tokens: number[] = [];
      let position = this.#position;
      while (tokens.length < MAX_FORCED && !isAccepting(position)) {
        const only = onlyToken(this.#grammar.mask(position, budget));
        if (only === null) break;
        tokens.push(only);
        position = this.#grammar.advance(position, only, budget);
      }
      return tokens;
    });
  }
}

function isAccepting({ table, state }: Position): boolean {
  return (table.flags.data[state]! & ACCEPTING) !== 0;
}

/** The id of the only bit that is set; null when there are more or none. */
function onlyToken(mask: Uint32Array): number | null {
  let found = -1;
  for (let w = 0; w < mask.length; w++) {
    const word = mask[w]!;
    if (word === 0) continue;
    if (found !== -1 || (word & (word - 1)) !== 0) return null;
    found = 32 * w + 31 - Math.clz32(word);
  }
  return found === -1 ? null : found;
}
