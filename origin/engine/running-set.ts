import { type KvCopy, KvSlots, type KvSlotsShape, type SlotAssignment } from './kv-slots.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';
import { PromptPrefill } from './prompt-prefill.ts';
import { Compaction, PrefillTurns } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import { WaitingQueue } from './waiting-queue.ts';

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
  readonly #queue: WaitingQueue<QueuedSequence>;
  readonly #turns = new PrefillTurns();
  readonly #compaction = new Compaction();
  #prefills: PromptPrefill[] = [];

  constructor(shape: KvSlotsShape, maxWaiting: number) {
    this.kv = new KvSlots(shape);
    this.#queue = new WaitingQueue(maxWaiting);
    this.decoding = Array.from({ length: shape.slots }, () => null);
  }

  /** Prompts in prefill, in the order of admission. */
  get prefills(): readonly PromptPrefill[] {
    return this.#prefills;
  }

  /** Sequences in the waiting queue. */
  get waiting(): number {
    return this.#queue.length;
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
    return this.waiting === 0 && this.running < this.kv.slots;
  }

  /** @param reserved by tenant, sequences of requests that are still being prepared */
  hasRoom(tenantId: string, sequences: number, reserved: ReadonlyMap<string, number>): boolean {
    let free = this.kv.slots - this.running;
    for (const count of reserved.values()) free -= count;
    return this.#queue.hasRoom(tenantId, sequences, free, reserved);
  }

  /** Adds a request and queues its sequences. */
  open(request: OpenRequest): void {
    this.requests.set(request.submission.requestId, request);
    for (const sequence of request.queuedSequences()) this.#queue.push(sequence);
    this.admit();
  }

  /** Reserves every free slot for the next waiting sequence. Sequences of a prompt in prefill join it. */
  admit(): void {
    for (let free = this.kv.slots - this.running; free > 0; free--) {
      const next = this.#queue.take();
      if (next === null) return;
      const same = this.#prefills.find(
        ({ request, promptIndex }) => request === next.request && promptIndex === next.promptIndex,
      );
      if (same === undefined) this.#prefills.push(new PromptPrefill(next));
      else same.sequences.push(next);
    }
  }

  /** Returns the prompt that computes its next chunk, or null. */
  nextPrefill(): PromptPrefill | null {
    return this.#turns.next(this.#prefills);
  }

  assignSlot(prefill: PromptPrefill): SlotAssignment {
    const { request, promptIndex, tokens, mayUseCache } = prefill;
    const { images = [] } = request.prompt(promptIndex);
    // Without their pixels, because a cached prefix may outlive the request by days.
    const spans = images.map(({ at, count, key }) => ({ at, count, key }));
    const assignment = this.kv.assign(tokens, request.cacheNamespace, mayUseCache, spans);
    prefill.slot = assignment.slot;
    prefill.computed = assignment.cached;
    return assignment;
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
    this.#queue.remove(request.submission.tenantId, (sequence) => sequence.request === request);
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
