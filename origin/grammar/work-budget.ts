import { ApiError } from '../../shared/errors.ts';

/** Thrown when a budget is spent; the holder of the budget says what that means to the caller. */
export class BudgetExceeded extends Error {
  constructor(purpose: string) {
    super(`${purpose} needs too much work`);
    this.name = 'BudgetExceeded';
  }
}

/** Units between two questions whether it is late. */
const POLL_EVERY = 100_000;
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

  /** @param isLate asked now and then; the budget is spent when it says so */
  constructor(purpose: string, units: number, isLate: () => boolean = NEVER) {
    this.#purpose = purpose;
    this.#isLate = isLate;
    this.#left = units;
    this.#pollAt = Math.max(0, units - POLL_EVERY);
  }

  get left(): number {
    return this.#left;
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left >= this.#pollAt) return;
    this.#pollAt = Math.max(0, this.#left - POLL_EVERY);
    if (this.#left < 0 || this.#isLate()) throw new BudgetExceeded(this.#purpose);
  }
}

/** Work one call may do, beside some walks through all tokens: five milliseconds. */
const PER_CALL = 500_000;
/** A mask that is made from nothing takes up to three walks; tokens have about two nodes each. */
const PER_TOKEN = 6;
/** Work a sequence earns with each call, a millisecond, and how many calls of the greatest kind it can save up for. */
const EARNED = 100_000;
const SAVED_CALLS = 10;

/**
 * Bounds the work a grammar may cause while tokens are generated: per call, so that no step of the engine stalls, and
 * on average, so that a grammar made to be slow cannot slow every step.
 */
export class StepBudget {
  readonly #perCall: number;
  #savings: number;

  constructor(vocabularySize: number) {
    this.#perCall = PER_CALL + PER_TOKEN * vocabularySize;
    this.#savings = SAVED_CALLS * this.#perCall;
  }

  /** Runs one operation; `invalid_grammar` when it needs more work than is left. */
  guard<T>(operation: (budget: WorkBudget) => T): T {
    this.#savings = Math.min(SAVED_CALLS * this.#perCall, this.#savings + EARNED);
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
