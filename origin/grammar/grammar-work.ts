import { VirtualTimes } from '@continuo/shared/virtual-times.ts';

/** Units of work (see work-budget.ts) of a tenant per step, about 2 ms. */
const UNITS_PER_STEP = 200_000;

/**
 * Limits the grammar work of each tenant per step. A tenant that has spent more pays it off in the next
 * steps. Until then, its constrained sequences wait, and the sequences of other tenants go on.
 */
export class GrammarWork {
  /** In units. */
  readonly #times = new VirtualTimes();
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
    this.#times.now += UNITS_PER_STEP;
    this.#times.forget();
    for (const resume of this.#waiting.splice(0)) resume();
  }

  spend(tenantId: string, units: number): void {
    this.#times.charge(tenantId, units);
  }

  /** Returns whether the tenant has to wait for a later step. */
  isSpent(tenantId: string): boolean {
    return this.#times.lead(tenantId) >= UNITS_PER_STEP;
  }

  nextStep(): Promise<void> {
    return new Promise((resume) => {
      this.#waiting.push(resume);
      this.#onWait();
    });
  }
}
