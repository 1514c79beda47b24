import type { WorkBudget } from '../work-budget.ts';
import { type GrammarVocabulary, SHORT_BYTES } from './grammar-vocabulary.ts';
import type { TokenMask } from './mask-cache.ts';
import { areSimilar } from './similarity.ts';
import { DEAD, type StateTable } from './state-table.ts';

/** States with more items are walked as a whole. */
const MAX_ISOLATED_ITEMS = 4;
/** Rules that may end at more nodes than this are walked together with their callers. */
const MAX_RETURNS = 10_000;
/** Studied states of a rule that a new one is compared with. */
const MAX_CANDIDATES = 8;

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
  /** By rule: program states studied last. */
  readonly #studied = new Map<number, number[]>();

  constructor(table: StateTable, vocabulary: GrammarVocabulary) {
    this.#table = table;
    this.#vocabulary = vocabulary;
    this.#states = vocabulary.masks.newOwner();
    this.#isolated = vocabulary.masks.newOwner();
  }

  mask(state: number, budget: WorkBudget): Uint32Array {
    const { masks, walk } = this.#vocabulary;
    const known = masks.get(this.#states, state);
    if (known) return known.mask;
    const scratch = walk.scratch();
    if (!this.#byItems(state, scratch, budget)) walk.all(this.#table, state, scratch, budget);
    const mask = walk.finished(scratch);
    masks.set(this.#states, state, { mask, returning: null, longReturning: [] });
    return mask;
  }

  /** False when the state is better walked as a whole; the bits set until then are right as far as they go. */
  #byItems(state: number, scratch: Uint32Array, budget: WorkBudget): boolean {
    const { walk, longWalk } = this.#vocabulary;
    const items = this.#table.items(state).slice();
    if (items.length > 2 * MAX_ISOLATED_ITEMS) return false;
    for (let i = 0; i < items.length; i += 2) {
      const q = items[i]!;
      const { mask, returning, longReturning } = this.#isolatedMask(q, budget);
      if (returning === null) return false;
      for (let w = 0; w < mask.length; w++) scratch[w]! |= mask[w]!;
      if (returning.length + longReturning.length === 0) continue;
      const caller = this.#table.afterReturn(this.#table.program.ruleOf[q]!, items[i + 1]!, budget);
      if (caller === DEAD || this.#table.items(caller).length === 0) continue;
      walk.below(this.#table, caller, returning, scratch, budget);
      longWalk.below(this.#table, caller, longReturning, scratch, budget);
    }
    return true;
  }

  #isolatedMask(programState: number, budget: WorkBudget): TokenMask {
    const { masks } = this.#vocabulary;
    const known = masks.get(this.#isolated, programState);
    if (known) return known;
    const similar = this.#similarMask(programState, budget);
    const made = similar
      ? this.#fromSimilar(programState, similar, budget)
      : this.#study(programState, budget);
    masks.set(this.#isolated, programState, made);
    return made;
  }

  #study(programState: number, budget: WorkBudget): TokenMask {
    const { walk } = this.#vocabulary;
    const scratch = walk.scratch();
    const state = this.#table.isolated(programState);
    const returning = walk.all(this.#table, state, scratch, budget, MAX_RETURNS);
    this.#remember(programState);
    return { mask: walk.finished(scratch), returning, longReturning: [] };
  }

  /** The mask of a state that reads short tokens alike: what is left to do are the long tokens. */
  #fromSimilar(programState: number, similar: TokenMask, budget: WorkBudget): TokenMask {
    const { walk, longWalk, longTokens, maskLength } = this.#vocabulary;
    const scratch = longWalk.scratch();
    const found = longWalk.all(this.#table, this.#table.isolated(programState), scratch, budget, MAX_RETURNS);
    const mask = longWalk.finished(scratch);
    for (let w = 0; w < maskLength; w++) mask[w]! |= similar.mask[w]! & ~longTokens[w]!;
    if (similar.returning === null || found === null) return { mask, returning: null, longReturning: [] };
    return {
      mask,
      returning: similar.returning.filter((node) => walk.lengthAt(node) <= SHORT_BYTES),
      longReturning: found.filter((node) => longWalk.lengthAt(node) > SHORT_BYTES),
    };
  }

  #similarMask(programState: number, budget: WorkBudget): TokenMask | null {
    const { program } = this.#table;
    for (const other of this.#studied.get(program.ruleOf[programState]!) ?? []) {
      const mask = this.#vocabulary.masks.get(this.#isolated, other);
      if (mask && areSimilar(program, programState, other, SHORT_BYTES, budget)) return mask;
    }
    return null;
  }

  #remember(programState: number): void {
    const rule = this.#table.program.ruleOf[programState]!;
    const others = this.#studied.get(rule) ?? [];
    this.#studied.set(rule, [programState, ...others].slice(0, MAX_CANDIDATES));
  }
}
