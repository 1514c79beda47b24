/** Units of work (see work-budget.ts) that a tenant may spend per step, about 2 ms, however many sequences it has. */
const UNITS_PER_STEP = 200_000;

/**
 * Limits the grammar work of each tenant per step. A tenant that has spent more pays it off in the next steps. Until
 * then, its constrained sequences wait, and the sequences of other tenants go on.
 */
export class GrammarWork {
  /** Units that a tenant has spent and not paid off. */
  readonly #owed = new Map<string, number>();
  readonly #onWait: () => void;
  #waiting: (() => void)[] = [];

  /** @param onWait called when a caller waits for the next step, because an idle engine makes none */
  constructor(onWait: () => void) {
    this.#onWait = onWait;
  }

  /** True while a caller of `nextStep` waits. */
  get awaited(): boolean {
    return this.#waiting.length > 0;
  }

  beginStep(): void {
    for (const [tenantId, units] of this.#owed) {
      if (units > UNITS_PER_STEP) this.#owed.set(tenantId, units - UNITS_PER_STEP);
      else this.#owed.delete(tenantId);
    }
    for (const resume of this.#waiting.splice(0)) resume();
  }

  spend(tenantId: string, units: number): void {
    if (units > 0) this.#owed.set(tenantId, (this.#owed.get(tenantId) ?? 0) + units);
  }

  /** Returns whether the tenant has to wait for a later step. */
  isSpent(tenantId: string): boolean {
    return (this.#owed.get(tenantId) ?? 0) >= UNITS_PER_STEP;
  }

  nextStep(): Promise<void> {
    return new Promise((resume) => {
      this.#waiting.push(resume);
      this.#onWait();
    });
  }
}
