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
