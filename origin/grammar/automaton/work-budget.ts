import { ApiError } from '@continuo/shared/errors.ts';

/** A work budget is spent. The owner of the budget maps this to an error for the caller. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded';
}

/**
 * Counts elementary steps instead of time, so equal inputs give equal results. One unit takes about 10 ns
 * while masks are computed, and 20 to 100 ns while a grammar is compiled.
 */
export class WorkBudget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  /** Fails now if later work certainly needs more than is left. */
  require(units: number): void {
    if (this.#left < units) throw new BudgetExceeded();
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new BudgetExceeded();
  }
}

/**
 * Units that one call may spend in addition to UNITS_PER_TOKEN; about 50 ms, three times what the most
 * expensive of real schemas takes at 152,000 tokens. Cached masks only make a call cheaper: a text that a new
 * cache follows never fails.
 */
const UNITS_PER_CALL = 5_000_000;
/** Computing a mask takes up to three walks over the token trie, which has about two nodes per token. */
const UNITS_PER_TOKEN = 6;

/**
 * Limits the work of one call that a grammar may cause while tokens are generated. It only ends grammars that
 * would stop the engine: for the average, a tenant's sequences wait (see GrammarWork).
 */
export class StepBudget {
  readonly #perCall: number;
  readonly #onWork: (units: number) => void;

  constructor(vocabularySize: number, onWork: (units: number) => void) {
    this.#onWork = onWork;
    this.#perCall = UNITS_PER_CALL + UNITS_PER_TOKEN * vocabularySize;
  }

  /**
   * Runs one operation.
   * @throws ApiError `invalid_grammar` if the operation exceeds the budget
   */
  run<T>(operation: (budget: WorkBudget) => T): T {
    const budget = new WorkBudget(this.#perCall);
    try {
      return operation(budget);
    } catch (error) {
      if (!(error instanceof BudgetExceeded)) throw error;
      throw new ApiError(
        'invalid_grammar',
        'The grammar is too ambiguous or too large to follow at this point of the text. Simplify it.',
      );
    } finally {
      this.#onWork(this.#perCall - Math.max(0, budget.left));
    }
  }
}
