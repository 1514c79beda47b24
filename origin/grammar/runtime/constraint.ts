import { ApiError } from '@continuo/shared/errors.ts';
import { BudgetExceeded, PieceTooLarge, WorkBudget } from '../automaton/work-budget.ts';

/** An operation of a constraint has to be called again in a later step. What it has computed is kept. */
export class UnfinishedWork extends Error {
  override readonly name = 'UnfinishedWork';
}

/**
 * The constraint of one sequence, as the sampler sees it. It works on bytes. An operation whose work exceeds
 * that of one call throws UnfinishedWork. What `accept` and `acceptBytes` have left to do, the next operation
 * does first.
 */
export interface Constraint {
  /**
   * The allowed tokens: bit (id & 31) of word (id >>> 5). Special tokens and end tokens are never set; for
   * the end, see `accepting`. The constraint owns the array, which is valid until the next `accept`.
   */
  mask(): Uint32Array;
  /**
   * Whether the text so far is a complete match, so that the sequence may end here. Known when `mask` has
   * returned.
   */
  readonly accepting: boolean;
  /** Whether the text so far and a reference to this token are a complete match. */
  completesWith?(token: number): boolean;
  /**
   * Advances by one token.
   * @throws Error if `mask` does not allow the token
   */
  accept(token: number): void;
  /** Whether the text may go on with these bytes. */
  allowsBytes(bytes: Uint8Array): boolean;
  /** Advances by bytes that it allows. */
  acceptBytes(bytes: Uint8Array): void;
  /** Returns a function that goes back to this place of the text. */
  save(): () => void;
}

/** A compiled grammar. All sequences that use it share it. */
export interface CompiledGrammar {
  /** Keywords of its schemas that are not enforced because no specification knows them. */
  readonly ignoredKeywords?: readonly string[];
  /** @param onWork called after each operation of the constraint with the units of work that it took */
  start(onWork?: (units: number) => void): Constraint;
}

/** Units that one call may spend in addition to UNITS_PER_TOKEN; about 50 ms. */
const UNITS_PER_CALL = 5_000_000;
/** Computing a mask takes up to three walks over the token trie, which has about two nodes per token. */
const UNITS_PER_TOKEN = 6;
/**
 * Units of one parser step, about 10 ms. UNITS_PER_CALL has room for a step, a part of it that is kept by
 * itself, and a filter of a mask (see distinct-items.ts). So every call completes something new.
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
