import { type KvCopy, KvSlots, type KvSlotsShape, type SlotAssignment } from './kv/kv-slots.ts';
import type { PrefixStore, StoredChunk } from './kv/prefix-store.ts';
import type { TokenScores } from './kv/token-scores.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';
import { PromptPrefill } from './prompt-prefill.ts';
import { Compaction, PrefillTurns } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import { WaitingQueue } from './scheduling/waiting-queue.ts';

/**
 * Tracks each sequence's state: waiting, prefilling or decoding. A sequence that leaves the waiting queue has a slot
 * reserved until it ends, so a running sequence is never preempted. The caller makes the KV copies that the methods
 * return, in order and before the next run.
 */
export class RunningSet {
  readonly kv: KvSlots;
  /** Open requests by id. */
  readonly requests = new Map<string, OpenRequest>();
  /** The sequence decoding in each slot. */
  readonly decoding: (Sequence | null)[];
  readonly #queue: WaitingQueue<QueuedSequence, OpenRequest>;
  readonly #store: PrefixStore | null;
  readonly #chunk: number;
  readonly #turns = new PrefillTurns();
  readonly #compaction = new Compaction();
  #prefills: PromptPrefill[] = [];

  /** @param store keeps prefixes beyond the slots; null = nothing does */
  constructor(shape: KvSlotsShape, maxWaiting: number, store: PrefixStore | null = null) {
    this.#store = store;
    this.#chunk = shape.prefillChunk;
    this.kv = new KvSlots(shape);
    this.#queue = new WaitingQueue(maxWaiting);
    this.decoding = Array.from({ length: shape.slots }, () => null);
  }

  /** Prompts in prefill, in the order of admission. */
  get prefills(): readonly PromptPrefill[] {
    return this.#prefills;
  }

  /** Requests in the waiting queue. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Sequences of these requests that wait for a slot. */
  get waiting(): number {
    let count = 0;
    for (const request of this.requests.values()) count += request.waiting;
    return count;
  }

  /** Sequences in prefill or decoding. */
  get running(): number {
    let count = 0;
    for (const sequence of this.decoding) if (sequence !== null) count++;
    for (const prefill of this.#prefills) count += prefill.sequences.length;
    return count;
  }

  /** Choices of the running sequences; greedy choices share a sequence but have separate events. */
  get runningChoices(): number {
    let count = 0;
    for (const sequence of this.decoding) count += sequence?.queued.choices ?? 0;
    for (const { sequences } of this.#prefills) for (const { choices } of sequences) count += choices;
    return count;
  }

  get hasFreeSlot(): boolean {
    return this.queued === 0 && this.running < this.kv.slots;
  }

  /** @param preparing by tenant, requests that have been admitted and not opened */
  hasRoom(tenantId: string, sequences: number, preparing: ReadonlyMap<string, number>): boolean {
    const free = this.kv.slots - this.running;
    const reserved = [...preparing.values()].reduce((sum, count) => sum + count, 0);
    const startsAtOnce = this.queued === 0 && sequences <= free - reserved;
    return startsAtOnce || this.#queue.hasRoom(tenantId, free, preparing);
  }

  /** Adds a request and queues it. */
  open(request: OpenRequest): void {
    this.requests.set(request.submission.requestId, request);
    this.#queue.push(request);
    this.admit();
  }

  /** Reserves every free slot for the next waiting sequence. Sequences of a prompt in prefill join it. */
  admit(): void {
    let free = this.kv.slots - this.running;
    if (free === 0 || this.queued === 0) return;
    const held = this.#heldByTenant();
    for (; free > 0; free--) {
      const next = this.#queue.take(this.kv.slots, held);
      if (next === null) return;
      const { request, promptIndex } = next;
      held.set(request.tenantId, (held.get(request.tenantId) ?? 0) + 1);
      const same = this.#prefills.find(
        (prefill) => prefill.request === request && prefill.promptIndex === promptIndex,
      );
      if (same === undefined) this.#prefills.push(new PromptPrefill(next, this.#store !== null));
      else same.sequences.push(next);
    }
  }

  /** Slots in use or reserved, by tenant. */
  #heldByTenant(): Map<string, number> {
    const held = new Map<string, number>();
    const add = ({ tenantId }: OpenRequest, count: number) =>
      held.set(tenantId, (held.get(tenantId) ?? 0) + count);
    for (const sequence of this.decoding) if (sequence !== null) add(sequence.request, 1);
    for (const { request, sequences } of this.#prefills) add(request, sequences.length);
    return held;
  }

  /** Returns the prompt that computes its next chunk, or null. */
  nextPrefill(): PromptPrefill | null {
    return this.#turns.next(this.#prefills);
  }

  /**
   * Gives a prompt its slot, with the longest prefix that a slot or the store has. `restore` writes what the store has; call
   * it after the copies and before the next prefill ends.
   */
  assignSlot(prefill: PromptPrefill): SlotAssignment & { readonly restore: () => void } {
    const { request, promptIndex, tokens, scores, scoredFrom, storable } = prefill;
    const { cacheNamespace } = request;
    const { images = [] } = request.prompt(promptIndex);
    // Without their pixels, because a cached prefix may outlive the request by days.
    const spans = images.map(({ at, count, key }) => ({ at, count, key }));
    // The last token is always computed, because its logits are needed.
    const found = this.#store?.find(cacheNamespace, tokens, Math.min(storable, tokens.length - 1)) ?? [];
    const usable = scores === null ? found : takeScores(scores, found, this.#chunk, scoredFrom);
    const stored = usable.length * this.#chunk;
    // Positions of slots and chunks without scores have no logits.
    const limit = scores === null ? tokens.length - 1 : Math.max(stored, scoredFrom);
    const assignment = this.kv.assign(tokens, cacheNamespace, limit, spans, stored);
    const { slot, cached, restoredFrom } = assignment;
    prefill.slot = slot;
    prefill.computed = cached;
    const restored = usable.slice(restoredFrom / this.#chunk);
    return { ...assignment, restore: () => this.#store?.restore(slot, restoredFrom, restored) };
  }

  /** Notes that a prompt's positions up to `end` have been computed, and stores their last chunk if it is whole. */
  record(prefill: PromptPrefill, end: number): void {
    const { slot, tokens, request, scores, scoredFrom, storable } = prefill;
    this.kv.record(slot, end);
    if (end % this.#chunk !== 0 || end > storable) return;
    const isScored = scoredFrom === 0 || end - this.#chunk > scoredFrom;
    this.#store?.add(slot, request.cacheNamespace, tokens, end, isScored ? scores : null);
  }

  /** Gives slots to the sequences of a computed prompt that continue; the first takes the prompt's slot. */
  startDecoding(prefill: PromptPrefill, sequences: readonly Sequence[]): readonly KvCopy[] {
    this.#prefills = this.#prefills.filter((other) => other !== prefill);
    const copies: KvCopy[] = [];
    const [first, ...others] = sequences;
    if (first === undefined) this.#release(prefill.slot, prefill.request);
    else this.#place(first, prefill.slot);
    for (const sequence of others) {
      const fork = this.kv.fork(prefill.slot, prefill.tokens.length);
      copies.push(...fork.copies);
      this.#place(sequence, fork.slot);
    }
    return copies;
  }

  /** Frees the slot of a finished sequence. */
  finish(sequence: Sequence): void {
    this.decoding[sequence.slot] = null;
    this.#release(sequence.slot, sequence.request);
  }

  /** Refunds the tokens that a sequence was charged for and did not generate. */
  refund({ queued, completionTokens }: Sequence): void {
    const { maxTokens } = queued.request.prompt(queued.promptIndex);
    this.#queue.refund(queued, maxTokens - completionTokens);
  }

  /**
   * Removes a request with all its sequences.
   * @param reusable false if a run failed with its slots, so that their KV cannot be trusted
   */
  close(request: OpenRequest, reusable: boolean): void {
    request.close();
    this.requests.delete(request.submission.requestId);
    if (!reusable) {
      for (const { tokens } of request.submission.prompts) this.#store?.drop(request.cacheNamespace, tokens);
    }
    this.#queue.remove(request);
    for (const prefill of this.#prefills) {
      if (prefill.request !== request) continue;
      if (prefill.slot >= 0) this.#release(prefill.slot, request, reusable);
      for (const queued of prefill.sequences) this.#queue.refund(queued, queued.cost);
    }
    this.#prefills = this.#prefills.filter((prefill) => prefill.request !== request);
    this.decoding.forEach((sequence, slot) => {
      if (sequence?.request !== request) return;
      this.decoding[slot] = null;
      this.#release(slot, request, reusable);
      this.refund(sequence);
    });
  }

  /** Closes a hole between the decoding slots if that pays. */
  compact(): readonly KvCopy[] {
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

/**
 * Takes the stored logprobs of a prompt's tokens after `scoredFrom`. Returns the chunks that need not be computed: those
 * before it, and those with logprobs. The last one with logprobs is computed again, because the logprob of the next token
 * comes from its logits.
 */
function takeScores(
  scores: TokenScores,
  chunks: readonly StoredChunk[],
  chunkLength: number,
  scoredFrom: number,
): readonly StoredChunk[] {
  const first = Math.floor(scoredFrom / chunkLength);
  const unscored = chunks.findIndex(({ scored }, index) => index >= first && !scored);
  const end = unscored < 0 ? chunks.length : unscored;
  for (let index = first; index < end; index++) {
    scores.copy(chunks[index]!.scores, 0, chunkLength, index * chunkLength);
  }
  return chunks.slice(0, Math.max(Math.min(first, end), end - 1));
}
