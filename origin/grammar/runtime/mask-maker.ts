import { INSEPARABLE } from '../program/state-equivalence.ts';
import type { WorkBudget } from '../work-budget.ts';
import type { GrammarVocabulary } from './grammar-vocabulary.ts';
import type { Returning, TokenMask } from './mask-cache.ts';
import { DEAD, type StateTable } from './state-table.ts';
import type { MaskWalk } from './trie-walk.ts';

/** States with more items are walked as a whole. */
const MAX_ISOLATED_ITEMS = 4;
/** Rules that may end at more nodes than this are walked together with their callers. */
const MAX_RETURNS = 10_000;
/** What can be read below more nodes than this is kept. */
const MIN_KEPT_NODES = 100;

/** A mask that is right for all tokens of fewer bytes than `apart`. */
interface SimilarMask {
  readonly made: TokenMask;
  readonly apart: number;
}

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
    const { masks } = this.#vocabulary;
    const known = masks.get(this.#states, state);
    if (known) return known.mask;
    const mask = this.#byItems(state, budget) ?? this.#asWhole(state, budget);
    masks.set(this.#states, state, { mask, returning: null });
    return mask;
  }

  #asWhole(state: number, budget: WorkBudget): Uint32Array {
    const { walk } = this.#vocabulary.grades[0]!;
    const scratch = walk.scratch();
    walk.all(this.#table, state, scratch, budget);
    return walk.finished(scratch);
  }

  /** null when the state is better walked as a whole. */
  #byItems(state: number, budget: WorkBudget): Uint32Array | null {
    const items = this.#table.items(state).slice();
    if (items.length > 2 * MAX_ISOLATED_ITEMS) return null;
    let union: Uint32Array | null = null;
    for (let i = 0; i < items.length; i += 2) {
      const { mask, returning } = this.#isolatedMask(items[i]!, budget);
      if (returning === null) return null;
      const beyond = this.#beyond(items[i]!, items[i + 1]!, returning, budget);
      for (const part of [mask, ...beyond]) union = union ? united(union, part) : part;
    }
    return union ?? new Uint32Array(this.#vocabulary.maskLength);
  }

  /** Tokens that an item's callers go on with after its rule has ended. */
  #beyond(
    programState: number,
    origin: number,
    returning: readonly Returning[],
    budget: WorkBudget,
  ): Uint32Array[] {
    if (returning.length === 0) return [];
    const caller = this.#table.afterReturn(this.#table.program.ruleOf[programState]!, origin, budget);
    if (caller === DEAD || this.#table.items(caller).length === 0) return [];
    return returning.map((part) => this.#below(part, caller, budget));
  }

  #below({ owner, walk, nodes }: Returning, caller: number, budget: WorkBudget): Uint32Array {
    const { masks } = this.#vocabulary;
    const known = masks.get(owner, caller);
    if (known) return known.mask;
    const scratch = walk.scratch();
    walk.below(this.#table, caller, nodes, scratch, budget);
    const mask = walk.finished(scratch);
    if (nodes.length >= MIN_KEPT_NODES) masks.set(owner, caller, { mask, returning: null });
    return mask;
  }

  #isolatedMask(programState: number, budget: WorkBudget): TokenMask {
    const { masks } = this.#vocabulary;
    const known = masks.get(this.#isolated, programState);
    if (known) return known;
    const similar = this.#mostSimilar(programState, budget);
    const made = similar
      ? this.#fromSimilar(programState, similar, budget)
      : this.#study(programState, this.#vocabulary.grades[0]!.walk, budget);
    masks.set(this.#isolated, programState, made);
    return made;
  }

  #study(programState: number, walk: MaskWalk, budget: WorkBudget): TokenMask {
    const scratch = walk.scratch();
    const nodes = walk.all(this.#table, this.#table.isolated(programState), scratch, budget, MAX_RETURNS);
    return { mask: walk.finished(scratch), returning: nodes && this.#returning(walk, nodes) };
  }

  /** What is left to do are the tokens that are long enough to tell the two states apart. */
  #fromSimilar(programState: number, { made, apart }: SimilarMask, budget: WorkBudget): TokenMask {
    if (apart > this.#vocabulary.longest) return made;
    const grade = this.#vocabulary.grades.findLast(({ longerThan }) => longerThan < apart)!;
    const { mask, returning } = this.#study(programState, grade.walk, budget);
    for (let w = 0; w < mask.length; w++) mask[w]! |= made.mask[w]! & ~grade.bits[w]!;
    if (made.returning === null || returning === null) return { mask, returning: null };
    return {
      mask,
      returning: [
        ...made.returning.flatMap((part) => this.#filtered(part, (length) => length < apart)),
        ...returning.flatMap((part) => this.#filtered(part, (length) => length >= apart)),
      ],
    };
  }

  #returning(walk: MaskWalk, nodes: readonly number[]): Returning[] {
    return nodes.length === 0 ? [] : [{ owner: this.#vocabulary.masks.newOwner(), walk, nodes }];
  }

  /** The same object where all nodes stay, so that what is below them stays known. */
  #filtered(part: Returning, keeps: (length: number) => boolean): Returning[] {
    const { walk, nodes } = part;
    const kept = nodes.filter((node) => keeps(walk.lengthAt(node)));
    return kept.length === nodes.length ? [part] : this.#returning(walk, kept);
  }

  /** The mask of the state most like this one, among those that are kept. */
  #mostSimilar(programState: number, budget: WorkBudget): SimilarMask | null {
    const { masks, grades } = this.#vocabulary;
    const { order, place, apart } = this.#table.program.likeness;
    // Below this a walk of its own costs no more.
    const least = grades[1]!.longerThan + 1;
    let best: SimilarMask | null = null;
    for (const direction of [-1, 1]) {
      let closest = INSEPARABLE;
      for (let at = place[programState]!; ; at += direction) {
        closest = Math.min(closest, apart[direction < 0 ? at : at + 1]!);
        if (closest < Math.max(least, best?.apart ?? 0)) break;
        budget.spend(1);
        const made = masks.get(this.#isolated, order[at + direction]!);
        if (made === undefined) continue;
        best = { made, apart: closest };
        break;
      }
    }
    return best;
  }
}

function united(a: Uint32Array, b: Uint32Array): Uint32Array {
  const union = a.slice();
  for (let w = 0; w < union.length; w++) union[w]! |= b[w]!;
  return union;
}
