import { ApiError } from '../../../shared/errors.ts';
import { BudgetExceeded, WorkBudget } from '../work-budget.ts';

/** Work one call may do: a few milliseconds more than an uncached mask of a usual grammar. */
const PER_CALL = 2_000_000;
/** Work a sequence earns with each call, and how much of it can be saved up. */
const EARNED = 500_000;
const SAVINGS = 20_000_000;

/**
 * Bounds the work a grammar may cause while tokens are generated: per call, so that no step of the engine stalls, and
 * on average, so that a grammar made to be slow cannot slow every step.
 */
export class StepBudget {
  #savings = SAVINGS;

  /** Runs one operation; `invalid_grammar` when it needs more work than is left. */
  guard<T>(operation: (budget: WorkBudget) => T): T {
    this.#savings = Math.min(SAVINGS, this.#savings + EARNED);
    const allowed = Math.min(PER_CALL, this.#savings);
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
