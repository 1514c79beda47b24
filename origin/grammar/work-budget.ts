import { ApiError } from '@continuo/shared/errors.ts';

/** A work budget is spent. The owner of the budget maps this to an error for the caller. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded';
}

/** Counts elementary steps instead of time, so that equal inputs give equal results. One unit is about 10 ns. */
export class WorkBudget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new BudgetExceeded();
  }
}

/** Units that one call may spend in addition to UNITS_PER_TOKEN; about 5 ms. */
const UNITS_PER_CALL = 500_000;
/** Computing a mask takes up to three walks over the token trie, which has about two nodes per token. */
const UNITS_PER_TOKEN = 6;
/** Units that a sequence earns with each call (1 ms), and how many calls of maximum size it can save up. */
const UNITS_EARNED_PER_CALL = 100_000;
const MAX_SAVED_CALLS = 10;

/**
 * Limits the work that a grammar may cause while tokens are generated. The limit per call keeps engine steps short; the
 * average over all calls keeps a slow grammar from slowing down every step.
 */
export class StepBudget {
  readonly #perCall: number;
  readonly #onWork: (units: number) => void;
  #savings: number;

  constructor(vocabularySize: number, onWork: (units: number) => void) {
    this.#onWork = onWork;
    this.#perCall = UNITS_PER_CALL + UNITS_PER_TOKEN * vocabularySize;
    this.#savings = MAX_SAVED_CALLS * this.#perCall;
  }

  /**
   * Runs one operation.
   * @throws ApiError `invalid_grammar` if the operation exceeds the budget
   */
  run<T>(operation: (budget: WorkBudget) => T): T {
    this.#savings = Math.min(MAX_SAVED_CALLS * this.#perCall, this.#savings + UNITS_EARNED_PER_CALL);
    const allowed = Math.min(this.#perCall, this.#savings);
    const budget = new WorkBudget(allowed);
    try {
      return operation(budget);
    } catch (error) {
      if (!(error instanceof BudgetExceeded)) throw error;
      throw new ApiError(
        'invalid_grammar',
        'The grammar is too ambiguous or too large to follow at this point of the text. Simplify it.',
      );
    } finally {
      const units = allowed - Math.max(0, budget.left);
      this.#savings -= units;
      this.#onWork(units);
    }
  }
}
