import { ApiError } from '../../shared/errors.ts';

/** Thrown when a budget is spent; the holder of the budget says what that means to the caller. */
export class BudgetExceeded extends Error {
  constructor(purpose: string) {
    super(`${purpose} needs too much work`);
    this.name = 'BudgetExceeded';
  }
}

/** Units between two questions whether it is late. */
const UNITS_PER_POLL = 100_000;
const NEVER = (): boolean => false;

/**
 * Counts elementary steps instead of time, so that the same input gets the same answer as long as time is not short. One
 * unit is about ten nanoseconds of work.
 */
export class WorkBudget {
  readonly #purpose: string;
  readonly #isLate: () => boolean;
  #left: number;
  #pollAt: number;

  /** @param isExpired asked now and then; the budget is spent when it says so */
  constructor(purpose: string, units: number, isExpired: () => boolean = NEVER) {
    this.#purpose = purpose;
    this.#isLate = isExpired;
    this.#left = units;
    this.#pollAt = Math.max(0, units - UNITS_PER_POLL);
  }

  get left(): number {
    return this.#left;
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left >= this.#pollAt) return;
    this.#pollAt = Math.max(0, this.#left - UNITS_PER_POLL);
    if (this.#left < 0 || this.#isLate()) throw new BudgetExceeded(this.#purpose);
  }
}

/** Work one call may do, beside some walks through all tokens: five milliseconds. */
const UNITS_PER_CALL = 500_000;
/** A mask that is made from nothing takes up to three walks; tokens have about two nodes each. */
const UNITS_PER_TOKEN = 6;
/** Work a sequence earns with each call, a millisecond, and how many calls of the greatest kind it can save up for. */
const UNITS_EARNED_PER_CALL = 100_000;
const MAX_SAVED_CALLS = 10;

/**
 * Bounds the work a grammar may cause while tokens are generated: per call, so that no step of the engine stalls, and
 * on average, so that a grammar made to be slow cannot slow every step.
 */
export class StepBudget {
  readonly #perCall: number;
  #savings: number;

  constructor(vocabularySize: number) {
    this.#perCall = UNITS_PER_CALL + UNITS_PER_TOKEN * vocabularySize;
    this.#savings = MAX_SAVED_CALLS * this.#perCall;
  }

  /** Runs one operation; `invalid_grammar` when it needs more work than is left. */
  run<T>(operation: (budget: WorkBudget) => T): T {
    this.#savings = Math.min(MAX_SAVED_CALLS * this.#perCall, this.#savings + UNITS_EARNED_PER_CALL);
    const allowed = Math.min(this.#perCall, this.#savings);
    const budget = new WorkBudget('The grammar', allowed);
    try {
      return operation(budget);
    } catch (error) {
      if (!(error instanceof BudgetExceeded)) throw error;
      throw new ApiError(
        'invalid_grammar',
        'The grammar is too ambiguous or too large to follow at this point of the text; please simplify it.',
      );
    } finally {
      this.#savings -= allowed - Math.max(0, budget.left);
    }
  }
}
