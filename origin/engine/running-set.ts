import { KvSlots, type KvSlotsShape } from './kv/kv-slots.ts';
import { type KvCopy, MAX_COPIED_CHUNKS } from './kv/pending-copies.ts';
import type { PrefixStore } from './kv/prefix-store.ts';
import type { Submission } from './messages.ts';
import { type OpenRequest, type QueuedSequence, sequenceCount } from './open-request.ts';
import { PrefixCache } from './prefix-cache.ts';
import { PromptPrefill, type PromptProgress } from './prompt-prefill.ts';
import { PriorityQueues } from './scheduling/priority-queues.ts';
import type { TenantWork, Work } from './scheduling/time-shares.ts';
import type { Sequence } from './sequence.ts';
import { Compaction } from './step-plan.ts';
import { KvMoveFailure, SuspendedSet, type SuspendedState } from './suspended-set.ts';

/** A prompt with so few chunks left goes before longer ones. */
const MAX_SHORT_CHUNKS = 2;

/**
 * Tracks each sequence's state: waiting, prefilling, decoding or suspended. A sequence that leaves the waiting queue has a
 * slot reserved until it ends or is suspended. The caller makes the KV copies that the methods
 * return, in order and before the next run.
 */
export class RunningSet {
  readonly kv: KvSlots;
  readonly prefixes: PrefixCache;
  /** Open requests by id. */
  readonly requests = new Map<string, OpenRequest>();
  /** The sequence decoding in each slot. */
  readonly decoding: (Sequence | null)[];
  readonly suspended: SuspendedSet;
  readonly queues: PriorityQueues<QueuedSequence, OpenRequest>;
  readonly #store: PrefixStore | null;
  readonly #compaction = new Compaction();
  readonly #chunk: number;
  #prefills: PromptPrefill[] = [];

  /** @param store keeps prefixes beyond the slots; null = nothing does */
  constructor(shape: KvSlotsShape, maxWaiting: number, store: PrefixStore | null = null) {
    this.#store = store;
    this.#chunk = shape.prefillChunk;
    this.kv = new KvSlots(shape, store !== null);
    this.prefixes = new PrefixCache(this.kv, store, shape.prefillChunk);
    this.queues = new PriorityQueues(shape.slots, maxWaiting);
    this.suspended = new SuspendedSet(this.kv, store);
    this.decoding = Array.from({ length: shape.slots }, () => null);
  }

  /** In the order of admission. */
  get prefills(): readonly PromptPrefill[] {
    return this.#prefills;
  }

  /** Sequences of these requests that wait for a slot. */
  get waiting(): number {
    return [...this.requests.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** Sequences in prefill or decoding. */
  get running(): number {
    return this.#holders().length;
  }

  /** Choices of the running sequences; greedy choices share a sequence but have separate events. */
  get runningChoices(): number {
    return this.#holders().reduce((sum, { choices }) => sum + choices, 0);
  }

  get hasFreeSlot(): boolean {
    return this.queues.isEmpty && this.running < this.kv.slots;
  }

  /** @param preparing by tenant, requests of the same class that have been admitted and not opened */
  hasRoom(submission: Submission, preparing: ReadonlyMap<string, number>): boolean {
    const holders = this.#holders();
    const flex = holders.filter(({ request }) => request.flex).length;
    const suspendable = submission.flex || this.#store === null ? 0 : Math.max(0, flex - 1);
    const free = this.kv.slots - holders.length + suspendable;
    return this.queues.hasRoom(submission, sequenceCount(submission), free, preparing);
  }

  /** Adds a request and queues it. */
  open(request: OpenRequest): void {
    this.requests.set(request.submission.requestId, request);
    this.queues.push(request);
    // Suspended sequences come first, and their KV must not be moved during a run.
    while (this.suspended.size === 0 && this.running < this.kv.slots) {
      const next = this.queues.take(this.#holders());
      if (next === null) return;
      this.#join(next);
    }
  }

  /**
   * Makes pieces of long copies, gives slots to waiting sequences, and suspends running ones for those that come first. Not during
   * a run. A call moves the KV of MAX_COPIED_CHUNKS twice, and of two more sequences at most. The rest waits for the next one.
   * @param copy makes KV copies at once
   * @param onMove called when KV of a sequence has been copied, or written back, with its request
   * @param onFault called if the KV of a sequence could not be moved; its request is lost, unless null
   */
  admit(
    copy: (copies: readonly KvCopy[]) => void,
    onMove: (request: OpenRequest) => void,
    onFault: (cause: unknown, lost: OpenRequest | null) => void,
  ): void {
    const pieces = this.kv.pieces();
    copy(pieces);
    const owner = pieces[0] && this.#inSlot(pieces[0].to)?.request;
    if (owner) onMove(owner);
    const enough = this.suspended.movedPositions + MAX_COPIED_CHUNKS * this.#chunk;
    // A tenant whose requests differ in weight could otherwise take a slot from itself for ever.
    for (let moves = 0; moves < 2 * this.kv.slots && !this.queues.isEmpty; moves++) {
      if (this.suspended.movedPositions >= enough) return;
      let next: QueuedSequence | null = null;
      try {
        if (this.running === this.kv.slots && !this.#suspendOne()) return;
        next = this.queues.take(this.#holders());
        if (next === null) return;
        const suspended = this.suspended.size;
        this.#start(next, this.suspended.take(next, copy) ?? null);
        if (this.suspended.size < suspended) onMove(next.request);
      } catch (error) {
        if (!(error instanceof KvMoveFailure)) throw error;
        onFault(error.cause, next?.request ?? null);
        if (next === null) return;
      }
    }
  }

  #start(next: QueuedSequence, state: SuspendedState): void {
    if (state === null) this.#join(next);
    else if (state instanceof PromptPrefill) this.#prefills.push(state);
    else this.#place(state, state.slot);
  }

  /** Adds a sequence to its prompt's prefill, or begins one. */
  #join(next: QueuedSequence): void {
    const { request, promptIndex } = next;
    const same = this.#prefills.find(
      (prefill) => prefill.request === request && prefill.promptIndex === promptIndex,
    );
    if (same === undefined) this.#prefills.push(new PromptPrefill(next, this.#chunk, this.#store !== null));
    else same.sequences.push(next);
  }

  /** Suspends the sequence that should give up its slot. Returns false if there is none, or no memory for it. */
  #suspendOne(): boolean {
    const victim = this.queues.victim(this.#holders());
    if (victim === null) return false;
    const { account } = victim.request;
    // Nothing has to be moved of a prompt that has not begun.
    const idle = this.#prefills.findLast(({ request, slot }) => request.account === account && slot < 0);
    const sequence = idle ? null : this.decoding.find((other) => other?.queued === victim);
    if (!sequence)
      return this.#suspendPrefill(idle ?? this.#prefills.find((one) => one.sequences.includes(victim))!);
    const { slot } = sequence;
    if (!this.suspended.add(victim, sequence)) return false;
    this.decoding[slot] = null;
    this.queues.putBack(victim, sequence.remaining);
    return true;
  }

  /** Suspends the last sequence of a prefill. The prefill goes on with the others, if there are any. */
  #suspendPrefill(prefill: PromptPrefill): boolean {
    const { sequences } = prefill;
    const last = sequences.at(-1)!;
    if (!this.suspended.add(last, sequences.length === 1 ? prefill : null)) return false;
    if (sequences.length > 1) sequences.pop();
    else this.#prefills = this.#prefills.filter((other) => other !== prefill);
    this.queues.putBack(last, last.cost);
    return true;
  }

  /** The sequences that hold a slot or have one reserved. */
  #holders(): QueuedSequence[] {
    const decoding = this.decoding.flatMap((sequence) => sequence?.queued ?? []);
    return [...decoding, ...this.#prefills.flatMap(({ sequences }) => sequences)];
  }

  #inSlot(slot: number): Sequence | PromptPrefill | undefined {
    return this.decoding[slot] ?? this.#prefills.find((prefill) => prefill.slot === slot);
  }

  /** The prompts that do not wait for copies. */
  get #ready(): PromptPrefill[] {
    return this.#prefills.filter((prefill) => !this.prefixes.waits(prefill));
  }

  /** What each account can compute now. */
  get work(): Work {
    const work = new Map<string, TenantWork>();
    for (const prefill of this.#ready) {
      const { weight, flex, account } = prefill.request;
      const isShort = this.isShort(prefill) || work.get(account)?.prompts === 'short';
      work.set(account, { weight, flex, prompts: isShort ? 'short' : 'long', rows: 0 });
    }
    for (const sequence of this.decoding) {
      if (sequence === null || this.kv.isArriving(sequence.slot)) continue;
      const { weight, flex, account } = sequence.request;
      const { prompts = 'none', rows = 0 } = work.get(account) ?? {};
      work.set(account, { weight, flex, prompts, rows: rows + 1 });
    }
    return work;
  }

  /** Returns the prompt of an account that computes its next chunk: the oldest, except that a short one may pass it once. */
  nextPrefill(account: string): PromptPrefill | null {
    const prefills = this.#ready.filter(({ request }) => request.account === account);
    const [oldest] = prefills;
    if (oldest === undefined) return null;
    const short = oldest.passed ? undefined : prefills.find((prefill) => this.isShort(prefill));
    oldest.passed = short !== undefined && short !== oldest;
    return short ?? oldest;
  }

  isShort({ request, promptIndex, computed }: PromptProgress): boolean {
    return request.isShort(promptIndex, computed, MAX_SHORT_CHUNKS * this.#chunk);
  }

  /** Whether a request that has just been opened computes a short prompt in the next step, if no run is going on. */
  isShortNext(request: OpenRequest): boolean {
    if (this.work.get(request.account)?.prompts === 'short') return true;
    const isShort = this.#store !== null && this.isShort({ request, promptIndex: 0, computed: 0 });
    return isShort && this.queues.isNext(request, this.#holders());
  }

  /** Returns a position of a slot that a row without a sequence may overwrite. */
  idlePosition(slot: number): number {
    return this.#inSlot(slot)?.computed ?? this.kv.kept(slot);
  }

  /** Gives slots to sequences of a computed prompt that continue. When none is left, the first takes the prompt's slot. */
  startDecoding(prefill: PromptPrefill, sequences: readonly Sequence[]): readonly KvCopy[] {
    const copies = [...this.kv.keepAtMost(prefill.slot, prefill.fixed)];
    let others = sequences;
    if (prefill.sequences.length === 0) {
      this.#prefills = this.#prefills.filter((other) => other !== prefill);
      const [first, ...rest] = sequences;
      if (first === undefined) this.#release(prefill.slot, prefill.request);
      else this.#place(first, prefill.slot);
      others = rest;
    }
    for (const sequence of others) {
      const fork = this.kv.fork(prefill.slot, prefill.tokens.length);
      copies.push(...fork.copies);
      this.#place(sequence, fork.slot);
    }
    // Tokens that are chosen again are computed in the prompt's slot.
    return [...copies, ...this.kv.keepAtMost(prefill.slot, prefill.fixed)];
  }

  /** Frees the slot of a finished sequence. */
  finish(sequence: Sequence): void {
    this.decoding[sequence.slot] = null;
    this.#release(sequence.slot, sequence.request);
  }

  /**
   * Removes a request with all its sequences.
   * @param reusable false if a run failed with its slots, so that their KV cannot be trusted
   */
  close(request: OpenRequest, reusable: boolean): void {
    request.close();
    this.requests.delete(request.submission.requestId);
    const distrusted = reusable ? [] : request.submission.prompts;
    for (const { tokens } of distrusted) this.#store?.drop(request.prefixNamespace, tokens);
    this.queues.remove(request);
    for (const queued of this.suspended.remove(request)) this.queues.withdraw(queued);
    for (const prefill of this.#prefills) {
      if (prefill.request !== request) continue;
      if (prefill.slot >= 0) this.#release(prefill.slot, request, reusable);
      for (const queued of prefill.sequences) this.queues.refund(queued, queued.cost);
    }
    this.#prefills = this.#prefills.filter((prefill) => prefill.request !== request);
    this.decoding.forEach((sequence, slot) => {
      if (sequence?.request !== request) return;
      this.decoding[slot] = null;
      this.#release(slot, request, reusable);
      this.queues.refund(sequence.queued, sequence.remaining);
    });
  }

  /** Closes a hole between the decoding slots if that pays. */
  compact(): readonly KvCopy[] {
    if (this.decoding.some((_, slot) => this.kv.isArriving(slot))) return [];
    const move = this.#compaction.next(this.decoding, (slot) => !this.kv.isHeld(slot));
    const sequence = move === null ? null : this.decoding[move.from];
    if (move === null || !sequence) return [];
    this.decoding[move.from] = null;
    this.#place(sequence, move.to);
    return this.kv.move(move.from, move.to, sequence.computed);
  }

  #place(sequence: Sequence, slot: number): void {
    sequence.slot = slot;
    this.decoding[slot] = sequence;
  }

  #release(slot: number, request: OpenRequest, reusable = true): void {
    this.kv.release(slot, reusable && request.submission.cachePrompt);
  }
}
