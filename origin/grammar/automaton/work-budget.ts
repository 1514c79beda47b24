/** A work budget is spent. The owner of the budget maps this to an error for the caller. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded';
}

/** A piece of work is too large by itself, whatever has been computed before. */
export class PieceTooLarge extends Error {
  override readonly name = 'PieceTooLarge';
}

/** Counts the work of a piece and charges it to a budget. */
export interface WorkPiece {
  /** @throws PieceTooLarge, BudgetExceeded */
  spend(units: number): void;
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

  /**
   * Begins work that a later call cannot continue. Its own units must not depend on what is cached: parts
   * that are kept are pieces of their own.
   */
  piece(units: number): WorkPiece {
    let left = units;
    return {
      spend: (spent) => {
        left -= spent;
        if (left < 0) throw new PieceTooLarge();
        this.spend(spent);
      },
    };
  }
}
