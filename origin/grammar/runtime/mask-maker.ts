import type { WorkBudget } from '../automaton/work-budget.ts';
import { NEVER_DISTINGUISHED } from '../program/state-equivalence.ts';
import type { GrammarVocabulary, PlainSlice } from './grammar-vocabulary.ts';
import type { ReturnPoints, TokenMask } from './mask-cache.ts';
import { PlainText } from './plain-text.ts';
import { DEAD, type StateTable } from './state-table.ts';
import type { TrieWalk } from './trie-walk.ts';

/** States with more items are walked as a whole. */
const MAX_SEPARATE_ITEMS = 4;
/** A rule that may end at more nodes than this is walked together with its callers. */
const MAX_RETURNS = 10_000;
/** A mask below at least this number of nodes is cached. */
const MIN_KEPT_NODES = 100;

/**
 * A search for plain text may cost this and one unit per token: half of a walk, most of which has the same
 * steps.
 */
const MIN_SEARCH_UNITS = 20_000;

/** A mask that is exact for tokens of fewer than `distinguishedAt` bytes. */
interface SimilarMask {
  readonly tokenMask: TokenMask;
  readonly distinguishedAt: number;
}

/**
 * Computes token masks. The mask of a state is the union over its items. Until an item's rule ends, its
 * tokens depend only on the program state and are cached. Only tokens that cross the end of the rule are
 * walked again.
 */
export class MaskMaker {
  readonly #table: StateTable;
  readonly #vocabulary: GrammarVocabulary;
  readonly #tiers: ReturnType<GrammarVocabulary['tiersFor']>;
  readonly #plainText: PlainText;
  /** Cache namespaces of parser states and of program states. */
  readonly #stateNamespace: number;
  readonly #itemNamespace: number;

  constructor(table: StateTable, vocabulary: GrammarVocabulary) {
    this.#table = table;
    this.#vocabulary = vocabulary;
    this.#tiers = vocabulary.tiersFor(table.program);
    this.#plainText = new PlainText(table.program);
    this.#stateNamespace = vocabulary.masks.newNamespace();
    this.#itemNamespace = vocabulary.masks.newNamespace();
  }

  mask(state: number, budget: WorkBudget): Uint32Array {
    const { masks } = this.#vocabulary;
    const cached = masks.get(this.#stateNamespace, state);
    if (cached) return cached.mask;
    const mask = this.#uniteItems(state, budget) ?? this.#walkWholeState(state, budget);
    masks.set(this.#stateNamespace, state, { mask, returns: null });
    return mask;
  }

  #walkWholeState(state: number, budget: WorkBudget): Uint32Array {
    return this.#walk(state, this.#plainSlice(state, budget), this.#tiers[0]!.walk, budget, 0).mask;
  }

  /** Returns null if the state must be walked as a whole. */
  #uniteItems(state: number, budget: WorkBudget): Uint32Array | null {
    const items = this.#table.items(state).slice();
    if (items.length > 2 * MAX_SEPARATE_ITEMS) return null;
    let union: Uint32Array | null = null;
    for (let i = 0; i < items.length; i += 2) {
      const { mask, returns } = this.#itemMask(items[i]!, budget);
      if (returns === null) return null;
      const beyond = this.#masksAfterReturn(items[i]!, items[i + 1]!, returns, budget);
      for (const part of [mask, ...beyond]) union = union ? unionOf(union, part) : part;
    }
    return union ?? new Uint32Array(this.#vocabulary.maskLength);
  }

  /** Masks of the tokens that continue in an item's callers after its rule has ended. */
  #masksAfterReturn(
    programState: number,
    origin: number,
    returns: readonly ReturnPoints[],
    budget: WorkBudget,
  ): Uint32Array[] {
    if (returns.length === 0) return [];
    const caller = this.#table.afterReturn(this.#table.states.ruleOf(programState), origin, budget);
    if (caller === DEAD || this.#table.items(caller).length === 0) return [];
    return returns.map((part) => this.#maskBelow(part, caller, budget));
  }

  #maskBelow({ namespace, walk, nodes }: ReturnPoints, caller: number, budget: WorkBudget): Uint32Array {
    const { masks } = this.#vocabulary;
    const cached = masks.get(namespace, caller);
    if (cached) return cached.mask;
    const bits = walk.emptyMask();
    walk.walkBelow(this.#table, caller, nodes, bits, budget);
    const mask = walk.finish(bits);
    if (nodes.length >= MIN_KEPT_NODES) masks.set(namespace, caller, { mask, returns: null });
    return mask;
  }

  #itemMask(programState: number, budget: WorkBudget): TokenMask {
    const { masks } = this.#vocabulary;
    const cached = masks.get(this.#itemNamespace, programState);
    if (cached) return cached;
    const similar = this.#findSimilar(programState, budget);
    const { walk } = this.#tiers[0]!;
    if (similar !== null && similar.distinguishedAt > walk.maxTokenBytes) {
      masks.set(this.#itemNamespace, programState, similar.tokenMask);
      return similar.tokenMask;
    }
    const slice = this.#plainSlice(this.#table.withAnyCaller(programState), budget);
    const mask =
      similar !== null && slice === null
        ? this.#extendSimilar(programState, similar, budget)
        : this.#walkItem(programState, slice, walk, budget);
    masks.set(this.#itemNamespace, programState, mask);
    return mask;
  }

  /**
   * Returns the largest slice of plain tokens that a state allows without an end of its rule; null if there
   * is none.
   */
  #plainSlice(state: number, budget: WorkBudget): PlainSlice | null {
    const units = MIN_SEARCH_UNITS + this.#vocabulary.tokens.vocabularySize;
    const free = this.#plainText.freeBytes(this.#table, state, budget, units);
    return this.#vocabulary.plainSlice(this.#table.program, free);
  }

  #walkItem(programState: number, slice: PlainSlice | null, tier: TrieWalk, budget: WorkBudget): TokenMask {
    const state = this.#table.withAnyCaller(programState);
    const { mask, walk, nodes } = this.#walk(state, slice, tier, budget, MAX_RETURNS);
    return { mask, returns: nodes && this.#returnPoints(walk, nodes) };
  }

  /** Walks the tokens beside a slice that the state allows, or all tokens of a tier. */
  #walk(state: number, slice: PlainSlice | null, tier: TrieWalk, budget: WorkBudget, maxReturns: number) {
    const walk = slice?.others ?? tier;
    const bits = walk.emptyMask();
    const nodes = walk.walkAll(this.#table, state, bits, budget, maxReturns);
    const mask = walk.finish(bits);
    if (slice !== null) for (let w = 0; w < mask.length; w++) mask[w]! |= slice.mask[w]!;
    return { mask, walk, nodes };
  }

  /** Walks only tokens that are long enough to distinguish the two states. */
  #extendSimilar(
    programState: number,
    { tokenMask, distinguishedAt }: SimilarMask,
    budget: WorkBudget,
  ): TokenMask {
    const tier = this.#tiers.findLast(({ longerThan }) => longerThan < distinguishedAt)!;
    const { mask, returns } = this.#walkItem(programState, null, tier.walk, budget);
    for (let w = 0; w < mask.length; w++) mask[w]! |= tokenMask.mask[w]! & ~tier.mask[w]!;
    if (tokenMask.returns === null || returns === null) return { mask, returns: null };
    return {
      mask,
      returns: [
        ...tokenMask.returns.flatMap((part) => this.#filtered(part, (length) => length < distinguishedAt)),
        ...returns.flatMap((part) => this.#filtered(part, (length) => length >= distinguishedAt)),
      ],
    };
  }

  #returnPoints(walk: TrieWalk, nodes: readonly number[]): ReturnPoints[] {
    return nodes.length === 0 ? [] : [{ namespace: this.#vocabulary.masks.newNamespace(), walk, nodes }];
  }

  /** Returns the same object if all nodes stay, so that masks below them stay cached. */
  #filtered(part: ReturnPoints, keeps: (length: number) => boolean): ReturnPoints[] {
    const { walk, nodes } = part;
    const kept = nodes.filter((node) => keeps(walk.bytesAt(node)));
    return kept.length === nodes.length ? [part] : this.#returnPoints(walk, kept);
  }

  /** The cached mask of the most similar state. */
  #findSimilar(programState: number, budget: WorkBudget): SimilarMask | null {
    if (!this.#table.states.isTabled(programState)) return null;
    const { masks } = this.#vocabulary;
    const tiers = this.#tiers;
    const { order, position, distinguishedAt } = this.#table.program.equivalence;
    // For shorter lengths, walking all tokens costs no more.
    const minimum = tiers[1]!.longerThan + 1;
    let best: SimilarMask | null = null;
    for (const direction of [-1, 1]) {
      let closest = NEVER_DISTINGUISHED;
      for (let at = position[programState]!; ; at += direction) {
        closest = Math.min(closest, distinguishedAt[direction < 0 ? at : at + 1]!);
        if (closest < Math.max(minimum, best?.distinguishedAt ?? 0)) break;
        budget.spend(1);
        const tokenMask = masks.get(this.#itemNamespace, order[at + direction]!);
        if (tokenMask === undefined) continue;
        best = { tokenMask, distinguishedAt: closest };
        break;
      }
    }
    return best;
  }
}

function unionOf(a: Uint32Array, b: Uint32Array): Uint32Array {
  const union = a.slice();
  for (let w = 0; w < union.length; w++) union[w]! |= b[w]!;
  return union;
}
