import { ApiError } from '@continuo/shared/errors.ts';
import { BudgetExceeded, PieceTooLarge, WorkBudget } from '../automaton/work-budget.ts';
import { UnfinishedWork } from './constraint.ts';

/** Units that one call may spend in addition to UNITS_PER_TOKEN; about 50 ms. */
const UNITS_PER_CALL = 5_000_000;
/** Computing a mask takes up to three walks over the token trie, which has about two nodes per token. */
const UNITS_PER_TOKEN = 6;
/**
 * Units of one parser step, about 10 ms. UNITS_PER_CALL has room for a step, a part of it that is kept by
 * itself, and a filter of a mask (see continuations.ts). So every call completes something new.
 */
export const UNITS_PER_PARSER_STEP = 1_000_000;

/**
 * Limits the work of one call while tokens are generated, so that no grammar stops the engine. A call that
 * needs more is made again in a later step. Only a piece that no call can complete fails.
 */
export class StepBudget {
  readonly #perCall: number;
  readonly #onWork: (units: number) => void;

  constructor(vocabularySize: number, onWork: (units: number) => void, unitsPerCall = UNITS_PER_CALL) {
    this.#onWork = onWork;
    this.#perCall = unitsPerCall + UNITS_PER_TOKEN * vocabularySize;
  }

  /**
   * Runs one operation.
   * @throws UnfinishedWork if the operation has to be continued with a new budget
   * @throws ApiError `invalid_grammar` if no budget suffices
   */
  run<T>(operation: (budget: WorkBudget) => T): T {
    const budget = new WorkBudget(this.#perCall);
    try {
      return operation(budget);
    } catch (error) {
      if (error instanceof PieceTooLarge) throw tooLarge();
      throw error instanceof BudgetExceeded ? new UnfinishedWork() : error;
    } finally {
      this.#onWork(this.#perCall - Math.max(0, budget.left));
    }
  }
}

const tooLarge = (): ApiError =>
  new ApiError(
    'invalid_grammar',
    'The grammar is too ambiguous or too large to follow at this point of the text. Simplify it.',
  );
