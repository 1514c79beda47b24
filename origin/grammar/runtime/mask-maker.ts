import type { WorkBudget } from '../work-budget.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import type { TokenMask } from './mask-cache.ts';
import { DEAD, type StateTable } from './state-table.ts';

/** States with more items are walked as a whole. */
const MAX_ISOLATED_ITEMS = 4;
/** Rules that may end at more nodes than this are walked together with their callers. */
const MAX_RETURNS = 10_000;

/**
 * Makes token masks. The mask of a state is the union over its items; what an item allows until its rule ends depends
 * on the program state alone and is kept, so that only the tokens that cross the rule's end are walked again.
 */
export class MaskMaker {
  readonly #table: StateTable;
  readonly #vocabulary: GrammarVocabulary;
  /** Keys of parser states and of isolated program states in the cache. */
  readonly #states: number;
  readonly #isolated: number;

  constructor(table: StateTable, vocabulary: GrammarVocabulary) {
    this.#table = table;
    this.#vocabulary = vocabulary;
    this.#states = vocabulary.masks.newOwner();
    this.#isolated = vocabulary.masks.newOwner();
  }

  mask(state: number, budget: WorkBudget): Uint32Array {
    const { masks, maskLength, walk } = this.#vocabulary;
    const known = masks.get(this.#states, state);
    if (known) return known.mask;
    const mask = new Uint32Array(maskLength);
    if (!this.#byItems(state, mask, budget)) walk.run(this.#table, state, 0, walk.nodes, mask, budget);
    masks.set(this.#states, state, { mask, returning: null });
    return mask;
  }

  /** False when the state is better walked as a whole; the bits set until then are right as far as they go. */
  #byItems(state: number, mask: Uint32Array, budget: WorkBudget): boolean {
    const items = this.#table.items(state).slice();
    if (items.length > 2 * MAX_ISOLATED_ITEMS) return false;
    for (let i = 0; i < items.length; i += 2) {
      const q = items[i]!;
      const isolated = this.#isolatedMask(q, budget);
      if (isolated.returning === null) return false;
      for (let w = 0; w < mask.length; w++) mask[w]! |= isolated.mask[w]!;
      if (isolated.returning.length === 0) continue;
      const caller = this.#table.afterReturn(this.#table.program.ruleOf[q]!, items[i + 1]!, budget);
      if (caller !== DEAD && this.#table.items(caller).length > 0) {
        this.#vocabulary.walk.runBelow(this.#table, caller, isolated.returning, mask, budget);
      }
    }
    return true;
  }

  #isolatedMask(programState: number, budget: WorkBudget): TokenMask {
    const { masks, walk, maskLength } = this.#vocabulary;
    const known = masks.get(this.#isolated, programState);
    if (known) return known;
    const mask = new Uint32Array(maskLength);
    const state = this.#table.isolated(programState);
    const returning = walk.run(this.#table, state, 0, walk.nodes, mask, budget);
    const made = { mask, returning: returning.length > MAX_RETURNS ? null : returning };
    masks.set(this.#isolated, programState, made);
    return made;
  }
}
