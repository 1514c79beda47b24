import type { ModelShape } from '../../model/model-runner.ts';
import { COPIED_POSITIONS_PER_ROW } from '../scheduling/step-plan.ts';
import { type KvCopy, MAX_COPIED_CHUNKS, PendingCopies } from './pending-copies.ts';
import { commonPrefix, firstDifference, type PromptSpan } from './prompt-match.ts';
import { emptySlot, leastUsed, type Slot, type SlotAssignment, type SlotPrompt } from './slot.ts';

/** With a prefix store, as many free slots keep the memory of their prefixes: those that were used last. */
const KEPT_PREFIXES = 8;

type KvSlotsShape = Pick<ModelShape, 'slots' | 'contextLength' | 'prefillChunk' | 'maxCopied'>;

/**
 * Assigns the slots of the KV cache and finds the prompt prefixes that they still hold (the prefix cache).
 *
 * Only whole prefill chunks of prompts are kept, because their bits do not depend on which request computed
 * them. A free slot keeps its prefix until the slot is needed. Then the prefix store has it; without a store,
 * or with images, it moves to the slot whose prefix was least recently used. Held slots stay close together,
 * so that one contiguous decode batch covers them.
 */
export class KvSlots {
  readonly #slots: readonly Slot[];
  readonly #chunk: number;
  readonly #hasStore: boolean;
  /** True: free slots keep no prefixes, because a sequence leaves a state beyond its prompt. */
  readonly #hasStates: boolean;
  /** Leaves one position of every slot free, where an idle row of a decode batch may write. */
  readonly #maxKept: number;
  readonly #maxCopied: number;
  readonly #pending = new PendingCopies();
  #held = 0;
  #tick = 0;

  /**
   * @param hasStore whether a prefix store keeps prompts beyond the slots, but without their images
   * @param hasStates whether a slot is more than its KV
   */
  constructor(shape: KvSlotsShape, hasStore = false, hasStates = false) {
    this.#chunk = shape.prefillChunk;
    this.#hasStore = hasStore;
    this.#hasStates = hasStates;
    this.#maxKept = this.#wholeChunks(shape.contextLength - 1);
    this.#maxCopied = shape.maxCopied ?? MAX_COPIED_CHUNKS * shape.prefillChunk;
    this.#slots = Array.from({ length: shape.slots }, () => emptySlot());
  }

  get slots(): number {
    return this.#slots.length;
  }

  get held(): number {
    return this.#held;
  }

  isHeld(slot: number): boolean {
    return this.#slot(slot).held;
  }

  /** Positions at the start of a slot that must not be overwritten. */
  kept(slot: number): number {
    return Math.max(this.#slot(slot).kept, this.#pending.sourceEnd(slot));
  }

  /** Whether a slot does not have all the KV yet that is copied to it. */
  isArriving(slot: number): boolean {
    return this.#pending.isTarget(slot);
  }

  /** Whether long copies are to be made. */
  get isCopying(): boolean {
    return !this.#pending.isEmpty;
  }

  /** Whether the KV of a slot is still being copied. */
  isCopied(slot: number): boolean {
    return this.#pending.sourceEnd(slot) > 0;
  }

  /** Returns the next pieces of long copies. */
  pieces(): readonly KvCopy[] {
    return this.#pending.take(this.#maxCopied);
  }

  /**
   * Assigns a slot to a prompt, with the longest cached prefix of its namespace. The last prompt token is
   * always computed, because its logits are needed.
   * @param limit most positions to take from the prefix that a slot holds
   * @param images of the prompt, in order
   */
  assign(
    prompt: Int32Array,
    namespace: string,
    limit: number,
    images: readonly PromptSpan[] = [],
  ): SlotAssignment {
    const donor = this.#longestPrefix(prompt, Math.min(limit, prompt.length - 1), namespace, images);
    const slot = this.#chooseSlot(donor);
    const copies = this.#pending.settle(slot);
    const cached = donor?.length ?? 0;
    if (donor?.slot !== slot || this.kept(slot) > cached) this.#saveKept(slot, donor?.slot ?? null, copies);
    if (donor !== null && donor.slot !== slot) {
      this.#copy(donor.slot, slot, cached, copies);
      this.#dropCovered(donor.slot, cached);
    }
    this.#hold(slot, { tokens: prompt, images, namespace }, Math.min(cached, this.#maxKept));
    return { slot, cached, copies };
  }

  /** Assigns a slot to another sequence of the prompt that the slot `from` has computed up to `length`. */
  fork(from: number, length: number): SlotAssignment {
    const source = this.#slot(from);
    const slot = this.#chooseSlot(null);
    const copies = this.#pending.settle(slot);
    this.#saveKept(slot, null, copies);
    this.#copy(from, slot, length, copies);
    this.#hold(slot, source, source.kept);
    return { slot, cached: source.kept, copies };
  }

  /** Moves a sequence with `length` positions to a free slot. */
  move(from: number, to: number, length: number): readonly KvCopy[] {
    const source = this.#slot(from);
    const copies = this.#pending.settle(to);
    this.#saveKept(to, null, copies);
    this.#copy(from, to, length, copies);
    this.#hold(to, source, source.kept);
    this.release(from, false);
    // At once, because the slot may get another sequence before pieces of KV are copied.
    return this.#hasStates ? [...copies, { from, to, start: 0, end: 0, state: length }] : copies;
  }

  /** Frees the slot of a sequence to be resumed. Its prefix stays in the cache if it is reusable. */
  suspend(slot: number, reusable: boolean): SlotPrompt {
    const { tokens, images, namespace, kept } = this.#slot(slot);
    this.release(slot, reusable);
    return { tokens, images, namespace, kept };
  }

  /** Assigns a slot to a suspended sequence, whose KV the caller writes after the copies. */
  resume(prompt: SlotPrompt): { readonly slot: number; readonly copies: readonly KvCopy[] } {
    const slot = this.#chooseSlot(null);
    const copies = this.#pending.settle(slot);
    this.#saveKept(slot, null, copies);
    this.#hold(slot, prompt, prompt.kept);
    return { slot, copies };
  }

  /** Notes that the KV of the prompt's first `computed` positions is in the slot. */
  record(slot: number, computed: number): void {
    if (this.#hasStates) return;
    const target = this.#slot(slot);
    const whole = this.#wholeChunks(Math.min(computed, target.tokens.length));
    target.kept = Math.max(target.kept, Math.min(whole, this.#maxKept));
  }

  /** Notes that positions from `length` on may be overwritten, after the copies. */
  keepAtMost(slot: number, length: number): readonly KvCopy[] {
    const target = this.#slot(slot);
    target.kept = Math.min(target.kept, this.#wholeChunks(length));
    return this.#pending.sourceEnd(slot) > length ? this.#pending.settle(slot) : [];
  }

  /** Frees a slot. Its prefix stays in the cache if it is reusable. */
  release(slot: number, reusable: boolean): void {
    const target = this.#slot(slot);
    if (!target.held) throw new Error(`KV slot ${slot} is not in use`);
    target.held = false;
    target.used = ++this.#tick;
    this.#held--;
    if (!reusable) this.#drop(slot);
  }

  /** At least how many slots `takeSurplus` would return, one after the other; 0 = none. */
  get surplus(): number {
    const dirty = this.#free.filter(({ surplus }) => surplus).length;
    return Math.max(dirty, this.#storedPrefixes.length - KEPT_PREFIXES);
  }

  /**
   * Returns the least recently used free slot with memory after its kept positions, which the caller gives
   * back to the system. A slot whose prefix the store has may keep none. Null if there is no such slot.
   */
  takeSurplus(): { readonly slot: number; readonly kept: number } | null {
    const stored = this.#storedPrefixes;
    const target = leastUsed(
      stored.length > KEPT_PREFIXES ? stored : this.#free.filter(({ surplus }) => surplus),
    );
    if (target === null) return null;
    if (stored.length > KEPT_PREFIXES) Object.assign(target, emptySlot());
    target.surplus = false;
    return { slot: this.#slots.indexOf(target), kept: target.kept };
  }

  /** The free slots that no pending copy needs. */
  get #free(): Slot[] {
    return this.#slots.filter(({ held }, slot) => !held && !this.isCopied(slot) && !this.isArriving(slot));
  }

  /** The free slots whose prefix the store has. */
  get #storedPrefixes(): Slot[] {
    if (!this.#hasStore) return [];
    return this.#free.filter(({ kept, images }) => kept > 0 && images.length === 0);
  }

  #drop(slot: number): void {
    Object.assign(this.#slot(slot), { ...emptySlot(), surplus: true });
  }

  #longestPrefix(
    prompt: Int32Array,
    limit: number,
    namespace: string,
    images: readonly PromptSpan[],
  ): { slot: number; length: number } | null {
    let slot = -1;
    let length = 0;
    for (let at = 0; at < this.#slots.length; at++) {
      const candidate = this.#slots[at]!;
      if (candidate.namespace !== namespace || candidate.kept <= length) continue;
      const end = Math.min(candidate.kept, limit, firstDifference(candidate.images, images));
      const common = this.#wholeChunks(commonPrefix(candidate.tokens, prompt, end));
      if (common > length) {
        slot = at;
        length = common;
      }
    }
    return length > 0 ? { slot, length } : null;
  }

  /**
   * Returns the donor's slot if it is free, and so near the held range that the copy would cost more; else
   * the free slot that keeps the range shortest.
   */
  #chooseSlot(donor: { readonly slot: number; readonly length: number } | null): number {
    const { first, last } = this.#heldRange();
    const growth = (slot: number): number =>
      last < 0 ? 0 : Math.max(0, first - slot) + Math.max(0, slot - last);
    const maxGrowth = Math.max(1, (donor?.length ?? 0) / COPIED_POSITIONS_PER_ROW);
    if (donor !== null && !this.isHeld(donor.slot) && growth(donor.slot) <= maxGrowth) return donor.slot;
    const idle = this.#free;
    // Another slot would have to be copied as a whole now.
    const free = idle.length > 0 ? idle : this.#slots.filter(({ held }) => !held);
    const growths = free.map((slot) => growth(this.#slots.indexOf(slot)));
    const least = Math.min(...growths);
    const best = leastUsed(free.filter((_, at) => growths[at] === least));
    if (best === null) throw new Error('no free KV slot');
    return this.#slots.indexOf(best);
  }

  /** Moves a prefix that is about to be overwritten to the free slot with the least recently used one. */
  #saveKept(slot: number, donor: number | null, copies: KvCopy[]): void {
    const saved = this.#slot(slot);
    if (saved.kept === 0 || (this.#hasStore && saved.images.length === 0)) return;
    const source = donor === null ? null : this.#slot(donor);
    const victim = leastUsed(this.#free.filter((slot) => slot !== source && slot.used < saved.used));
    if (victim === null) return;
    copies.push({ from: slot, to: this.#slots.indexOf(victim), start: 0, end: saved.kept });
    Object.assign(victim, { ...saved, held: false, surplus: true });
  }

  /** Copies the start of a slot now, or piece by piece if it is long or is not all there yet. */
  #copy(from: number, to: number, end: number, copies: KvCopy[]): void {
    const copy = { from, to, start: 0, end };
    if (end > this.#maxCopied || this.isArriving(from)) this.#pending.add(copy);
    else copies.push(copy);
  }

  /** Drops a free donor's prefix if all of it was copied. */
  #dropCovered(donor: number, copied: number): void {
    const source = this.#slot(donor);
    if (!source.held && source.kept <= copied) this.#drop(donor);
    else source.used = source.held ? source.used : ++this.#tick;
  }

  #hold(slot: number, { tokens, images, namespace }: Omit<SlotPrompt, 'kept'>, kept: number): void {
    const target = this.#slot(slot);
    if (target.held) throw new Error(`KV slot ${slot} is in use`);
    Object.assign(target, {
      held: true,
      tokens,
      images,
      namespace,
      kept,
      surplus: true,
      used: ++this.#tick,
    });
    this.#held++;
  }

  #heldRange(): { first: number; last: number } {
    const first = this.#slots.findIndex(({ held }) => held);
    const last = this.#slots.findLastIndex(({ held }) => held);
    return { first, last };
  }

  #wholeChunks(length: number): number {
    return length - (length % this.#chunk);
  }

  #slot(slot: number): Slot {
    const target = this.#slots[slot];
    if (target === undefined) throw new RangeError(`no KV slot ${slot}`);
    return target;
  }
}
