import type { WorkBudget } from '../automaton/work-budget.ts';
import { FIRST_STATE } from './state-table.ts';
import type { TableHandle } from './table-memory.ts';

/**
 * Copies a state of a table, and all states that it refers to, to another table of the same program. A copy
 * may take several calls, so no text is too long for it.
 */
export class StateImport {
  readonly to: TableHandle;
  readonly #from: TableHandle;
  readonly #state: number;
  /** By state: whether it has to be copied. */
  readonly #isNeeded: Uint8Array;
  /** By state: its number in the other table. Reserved numbers are equal in every table. */
  readonly #renamed: Int32Array;
  /** The states above are marked. An origin is older than the states that refer to it. */
  #unmarked: number;
  /** The states below are copied. */
  #uncopied = FIRST_STATE;

  constructor(from: TableHandle, to: TableHandle, state: number) {
    this.to = to;
    this.#from = from;
    this.#state = state;
    this.#unmarked = state;
    this.#isNeeded = new Uint8Array(state + 1);
    this.#isNeeded[state] = 1;
    this.#renamed = new Int32Array(Math.max(FIRST_STATE, state + 1));
    for (let reserved = 0; reserved < FIRST_STATE; reserved++) this.#renamed[reserved] = reserved;
  }

  /**
   * Returns the number of the copy. Both tables must still be there.
   * @throws BudgetExceeded if it has to be called again
   */
  run(budget: WorkBudget): number {
    this.#mark(budget);
    this.#copy(budget);
    return this.#renamed[this.#state]!;
  }

  #mark(budget: WorkBudget): void {
    const from = this.#from.table!;
    while (this.#unmarked >= FIRST_STATE) {
      const state = this.#unmarked--;
      if (this.#isNeeded[state] === 0) continue;
      const items = from.items(state);
      for (let i = 1; i < items.length; i += 2) this.#isNeeded[items[i]!] = 1;
      budget.spend(10 + items.length);
    }
  }

  #copy(budget: WorkBudget): void {
    const from = this.#from.table!;
    const to = this.to.table!;
    while (this.#uncopied <= this.#state) {
      const state = this.#uncopied++;
      if (this.#isNeeded[state] === 0) continue;
      const items = Array.from(from.items(state), (value, i) =>
        i % 2 === 0 ? to.states.importState(from.states, value) : this.#renamed[value]!,
      );
      this.#renamed[state] = to.intern(items, from.flags.data[state]!);
      budget.spend(20 + to.program.classCount + items.length);
    }
  }
}
