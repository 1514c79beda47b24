import type { KvSlots } from '../kv/kv-slots.ts';
import type { KvCopy } from '../kv/pending-copies.ts';
import { Compaction } from '../scheduling/step-plan.ts';
import type { TenantWork, Work } from '../scheduling/time-shares.ts';
import type { OpenRequest, QueuedSequence } from '../sequences/open-request.ts';
import { PromptPrefill } from '../sequences/prompt-prefill.ts';
import type { Sequence } from '../sequences/sequence.ts';
import type { PrefixCache } from './prefix-cache.ts';
import type { SuspendedState } from './suspended-set.ts';

/** A sequence that left, and the part of its cost that it has not used. */
interface Unused {
  readonly queued: QueuedSequence;
  readonly cost: number;
}

/**
 * The sequences that hold a slot, or have one reserved: in prefill or decoding. The caller makes the KV
 * copies that the methods return, in order and before the next run.
 */
export class RunningSet {
  readonly #kv: KvSlots;
  readonly #prefixes: PrefixCache;
  /** By slot. */
  readonly #decoding: (Sequence | null)[];
  readonly #compaction = new Compaction();
  #prefills: PromptPrefill[] = [];

  constructor(kv: KvSlots, prefixes: PrefixCache) {
    this.#kv = kv;
    this.#prefixes = prefixes;
    this.#decoding = Array.from({ length: kv.slots }, () => null);
  }

  /** The sequence decoding in each slot. */
  get decoding(): readonly (Sequence | null)[] {
    return this.#decoding;
  }

  /** In the order of admission. */
  get prefills(): readonly PromptPrefill[] {
    return this.#prefills;
  }

  get sequences(): QueuedSequence[] {
    const decoding = this.#decoding.flatMap((sequence) => sequence?.queued ?? []);
    return [...decoding, ...this.#prefills.flatMap(({ sequences }) => sequences)];
  }

  /** Sequences of the set. Each step asks for it, so no list of them is made. */
  get size(): number {
    return this.#prefills.reduce((sum, { sequences }) => sum + sequences.length, this.#streams);
  }

  /** Choices of the sequences; greedy choices share a sequence but have separate events. */
  get choices(): number {
    let sum = 0;
    for (const sequence of this.#decoding) sum += sequence?.queued.choices ?? 0;
    for (const { sequences } of this.#prefills) for (const { choices } of sequences) sum += choices;
    return sum;
  }

  get #streams(): number {
    let streams = 0;
    for (const sequence of this.#decoding) if (sequence !== null) streams++;
    return streams;
  }

  get hasStreams(): boolean {
    return this.#streams > 0;
  }

  /** More prompts wait than sequences decode. */
  get isCrowded(): boolean {
    return this.#prefills.length > this.#streams;
  }

  inSlot(slot: number): Sequence | PromptPrefill | undefined {
    return this.#decoding[slot] ?? this.#prefills.find((prefill) => prefill.slot === slot);
  }

  /**
   * Adds a sequence that goes on as it left, or to its prompt's prefill, which it begins if there is none.
   */
  add(queued: QueuedSequence, state: SuspendedState): void {
    if (state === null) this.#join(queued);
    else if (state instanceof PromptPrefill) this.#prefills.push(state);
    else this.#place(state, state.slot);
  }

  #join(queued: QueuedSequence): void {
    const { request, promptIndex } = queued;
    const same = this.#prefills.find(
      (prefill) => prefill.request === request && prefill.promptIndex === promptIndex,
    );
    if (same === undefined) this.#prefills.push(this.#prefixes.newPrefill(queued));
    else same.sequences.push(queued);
  }

  /**
   * Removes the sequence that gives up its slot for a victim. A prefill goes on with the others that wait for
   * it.
   * @param save saves its state; if it returns false, nothing changes
   * @returns null if nothing was saved
   */
  suspend(
    victim: QueuedSequence,
    save: (queued: QueuedSequence, state: SuspendedState) => boolean,
  ): Unused | null {
    const { account } = victim.request;
    // Nothing has to be moved of a prompt that has not begun.
    const idle = this.#prefills.findLast(({ request, slot }) => request.account === account && slot < 0);
    const decoding = idle ? null : this.#decoding.find((sequence) => sequence?.queued === victim);
    if (decoding) {
      const { slot } = decoding;
      if (!save(victim, decoding)) return null;
      this.#decoding[slot] = null;
      return { queued: victim, cost: decoding.remaining };
    }
    const prefill = idle ?? this.#prefills.find(({ sequences }) => sequences.includes(victim))!;
    const { sequences } = prefill;
    const last = sequences.at(-1)!;
    if (!save(last, sequences.length === 1 ? prefill : null)) return null;
    if (sequences.length > 1) sequences.pop();
    else this.#drop(prefill);
    return { queued: last, cost: last.cost };
  }

  #drop(dropped: PromptPrefill): void {
    this.#prefills = this.#prefills.filter((prefill) => prefill !== dropped);
  }

  /** The prompts that do not wait for copies. */
  get #ready(): PromptPrefill[] {
    return this.#prefills.filter((prefill) => !this.#prefixes.waits(prefill));
  }

  /** What each account can compute now. */
  get work(): Work {
    const work = new Map<string, TenantWork>();
    for (const prefill of this.#ready) {
      const { weight, flex, account } = prefill.request;
      const isShort = prefill.isShort || work.get(account)?.prompts === 'short';
      work.set(account, { weight, flex, prompts: isShort ? 'short' : 'long', rows: 0 });
    }
    for (const sequence of this.#decoding) {
      if (sequence === null || this.#kv.isArriving(sequence.slot)) continue;
      const { weight, flex, account } = sequence.request;
      const { prompts = 'none', rows = 0 } = work.get(account) ?? {};
      work.set(account, { weight, flex, prompts, rows: rows + 1 });
    }
    return work;
  }

  /** Returns the prompts of an account that do not wait for copies, in the order of admission. */
  prefillsOf(account: string): PromptPrefill[] {
    return this.#ready.filter(({ request }) => request.account === account);
  }

  /**
   * Returns the prompt of an account that computes its next chunk: the oldest, except that a short one may
   * pass it once.
   */
  nextPrefill(account: string): PromptPrefill | null {
    const prefills = this.prefillsOf(account);
    const [oldest] = prefills;
    if (oldest === undefined) return null;
    const short = oldest.passed ? undefined : prefills.find(({ isShort }) => isShort);
    oldest.passed = short !== undefined && short !== oldest;
    return short ?? oldest;
  }

  /** Returns, by slot, the sequences of the accounts that can decode now. */
  streamsOf(accounts: ReadonlySet<string>): (Sequence | null)[] {
    return this.#decoding.map((sequence, slot) =>
      sequence && accounts.has(sequence.request.account) && !this.#kv.isArriving(slot) ? sequence : null,
    );
  }

  /** Returns a position of a slot that a row without a sequence may overwrite. */
  idlePosition(slot: number): number {
    return this.inSlot(slot)?.computed ?? this.#kv.kept(slot);
  }

  /**
   * Gives slots to sequences of a computed prompt that continue. When none is left, the first takes the
   * prompt's slot.
   */
  startDecoding(prefill: PromptPrefill, sequences: readonly Sequence[]): readonly KvCopy[] {
    const copies = [...this.#kv.keepAtMost(prefill.slot, prefill.fixed)];
    let forked = sequences;
    if (prefill.sequences.length === 0) {
      this.#drop(prefill);
      const [first, ...rest] = sequences;
      if (first === undefined) this.#release(prefill.slot, prefill.request);
      else this.#place(first, prefill.slot);
      forked = rest;
    }
    for (const sequence of forked) {
      const fork = this.#kv.fork(prefill.slot, prefill.tokens.length);
      copies.push(...fork.copies);
      this.#place(sequence, fork.slot);
    }
    // Tokens that are chosen again are computed in the prompt's slot.
    return [...copies, ...this.#kv.keepAtMost(prefill.slot, prefill.fixed)];
  }

  /** Frees the slot of a finished sequence, if it has one. */
  finish({ slot, request }: Sequence): void {
    if (slot < 0) return;
    this.#decoding[slot] = null;
    this.#release(slot, request);
  }

  /**
   * Removes all sequences of a request.
   * @param reusable false if a run failed with its slots, so that their KV cannot be trusted
   */
  close(request: OpenRequest, reusable: boolean): readonly Unused[] {
    const unused: Unused[] = [];
    for (const prefill of this.#prefills) {
      if (prefill.request === request && prefill.slot >= 0) this.#release(prefill.slot, request, reusable);
    }
    this.#prefills = this.#prefills.filter((prefill) => prefill.request !== request);
    this.#decoding.forEach((sequence, slot) => {
      if (sequence?.request !== request) return;
      this.#decoding[slot] = null;
      this.#release(slot, request, reusable);
      unused.push({ queued: sequence.queued, cost: sequence.remaining });
    });
    return unused;
  }

  /** Closes a hole between the decoding slots if that pays. */
  compact(): readonly KvCopy[] {
    if (this.#kv.isCopying) return [];
    const move = this.#compaction.next(this.#decoding, (slot) => !this.#kv.isHeld(slot));
    const sequence = move === null ? null : this.#decoding[move.from];
    if (move === null || !sequence) return [];
    this.#decoding[move.from] = null;
    this.#place(sequence, move.to);
    return this.#kv.move(move.from, move.to, sequence.computed);
  }

  #place(sequence: Sequence, slot: number): void {
    sequence.slot = slot;
    this.#decoding[slot] = sequence;
  }

  #release(slot: number, request: OpenRequest, reusable = true): void {
    this.#kv.release(slot, reusable && request.submission.cachePrompt);
  }
}
