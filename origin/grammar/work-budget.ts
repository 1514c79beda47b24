/** Thrown when a budget is spent; the holder of the budget says what that means to the caller. */
export class BudgetExceeded extends Error {
  constructor(purpose: string) {
    super(`${purpose} needs too much work`);
    this.name = 'BudgetExceeded';
  }
}

/**
 * Counts elementary steps instead of time, so that the same input always gets the same answer. One unit is about ten
 * nanoseconds of work.
 */
export class WorkBudget {
  readonly #purpose: string;
  #left: number;

  constructor(purpose: string, units: number) {
    this.#purpose = purpose;
    this.#left = units;
  }

  get left(): number {
    return this.#left;
  }

  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new BudgetExceeded(this.#purpose);
  }
}
