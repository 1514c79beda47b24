import { Compaction } from './compaction.ts';
import { type KvCopy, KvSlots, type KvSlotsShape, type Seat } from './kv-slots.ts';
import type { OpenRequest, PendingSequence } from './open-request.ts';
import { PromptPrefill } from './prompt-prefill.ts';
import { PrefillTurns } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import { WaitingQueue } from './waiting-queue.ts';

/**
 * Who is where: waiting, in prefill, or decoding in a slot. A sequence that leaves the queue has a slot's place
 * reserved for its whole life, so nothing that runs is ever pushed out. Pure: the copies it asks for are the caller's to
 * make, in order and before the next run.
 */
export class Roster {
  readonly kv: KvSlots;
  readonly requests = new Map<string, OpenRequest>();
  /** Sequence decoding in each slot. */
  readonly decoding: (Sequence | null)[];
  readonly #queue: WaitingQueue<PendingSequence>;
  readonly #turns = new PrefillTurns();
  readonly #compaction = new Compaction();
  #prefills: PromptPrefill[] = [];

  constructor(shape: KvSlotsShape, maxWaiting: number) {
    this.kv = new KvSlots(shape);
    this.#queue = new WaitingQueue(maxWaiting);
    this.decoding = Array.from({ length: shape.slots }, () => null);
  }

  /** Prompts being computed, in the order of admission. */
  get prefills(): readonly PromptPrefill[] {
    return this.#prefills;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Sequences that have a place: in prefill or decoding. */
  get admitted(): number {
    let count = 0;
    for (const sequence of this.decoding) if (sequence !== null) count++;
    for (const prefill of this.#prefills) count += prefill.sequences.length;
    return count;
  }

  get hasFreePlace(): boolean {
    return this.waiting === 0 && this.admitted < this.kv.slots;
  }

  /** Choices that those sequences speak for, each with events of its own: greedy ones share a sequence. */
  get choices(): number {
    let count = 0;
    for (const sequence of this.decoding) count += sequence?.pending.copies ?? 0;
    for (const { sequences } of this.#prefills) for (const { copies } of sequences) count += copies;
    return count;
  }

  /** @param expected by tenant, sequences that were promised a place and are still to come */
  hasRoom(tenantId: string, sequences: number, expected: ReadonlyMap<string, number>): boolean {
    let free = this.kv.slots - this.admitted;
    for (const count of expected.values()) free -= count;
    return this.#queue.hasRoom(tenantId, sequences, free, expected);
  }

  open(request: OpenRequest): void {
    this.requests.set(request.submission.requestId, request);
    for (const sequence of request.sequences()) this.#queue.push(sequence);
    this.admit();
  }

  /** Gives every free place to the sequence whose turn it is; choices of a prompt in prefill join it. */
  admit(): void {
    for (let free = this.kv.slots - this.admitted; free > 0; free--) {
      const next = this.#queue.take();
      if (next === null) return;
      const same = this.#prefills.find(
        ({ request, promptIndex }) => request === next.request && promptIndex === next.promptIndex,
      );
      if (same === undefined) this.#prefills.push(new PromptPrefill(next));
      else same.sequences.push(next);
    }
  }

  /** The prompt that computes its next chunk. */
  nextPrefill(): PromptPrefill | null {
    return this.#turns.next(this.#prefills);
  }

  /** Gives a prompt its slot. */
  seat(prefill: PromptPrefill): Seat {
    const { request, promptIndex, tokens, mayReuse } = prefill;
    const { images = [] } = request.prompt(promptIndex);
    // Without their pixels: what a slot has kept may outlive the request for days.
    const spans = images.map(({ at, count, key }) => ({ at, count, key }));
    const seat = this.kv.seat(tokens, request.cacheNamespace, mayReuse, spans);
    prefill.slot = seat.slot;
    prefill.computed = seat.cached;
    return seat;
  }

  /** The prompt is computed: its sequences that go on take slots, the first the prompt's own. */
  place(prefill: PromptPrefill, sequences: readonly Sequence[]): readonly KvCopy[] {
    this.#prefills = this.#prefills.filter((other) => other !== prefill);
    const copies: KvCopy[] = [];
    const [first, ...others] = sequences;
    if (first === undefined) this.#release(prefill.slot, prefill.request);
    else this.#sit(first, prefill.slot);
    for (const sequence of others) {
      const seat = this.kv.fork(prefill.slot, prefill.tokens.length);
      copies.push(...seat.copies);
      this.#sit(sequence, seat.slot);
    }
    return copies;
  }

  /** A decoding sequence has finished. */
  retire(sequence: Sequence): void {
    this.decoding[sequence.slot] = null;
    this.#release(sequence.slot, sequence.request);
  }

  /** Settles the share of a sequence that ends: it was charged for all the tokens it might have used. */
  refund(sequence: Sequence): void {
    const { request, promptIndex } = sequence.pending;
    this.#queue.refund(sequence.pending, request.prompt(promptIndex).maxTokens - sequence.completionTokens);
  }

  /**
   * Takes a request out of every place it has.
   * @param intact false = a run failed while its slots were in it, so what they keep is not to be trusted
   */
  close(request: OpenRequest, intact: boolean): void {
    request.close();
    this.requests.delete(request.submission.requestId);
    this.#queue.remove(request.submission.tenantId, (sequence) => sequence.request === request);
    for (const prefill of this.#prefills) {
      if (prefill.request !== request) continue;
      if (prefill.slot >= 0) this.#release(prefill.slot, request, intact);
      for (const pending of prefill.sequences) this.#queue.refund(pending, pending.cost);
    }
    this.#prefills = this.#prefills.filter((prefill) => prefill.request !== request);
    this.decoding.forEach((sequence, slot) => {
      if (sequence?.request !== request) return;
      this.decoding[slot] = null;
      this.#release(slot, request, intact);
      this.refund(sequence);
    });
  }

  /** Closes a hole between the decoding slots when that pays. */
  compact(): readonly KvCopy[] {
    const move = this.#compaction.next(this.decoding, (slot) => !this.kv.isHeld(slot));
    const sequence = move === null ? null : this.decoding[move.from];
    if (move === null || !sequence) return [];
    this.decoding[move.from] = null;
    this.#sit(sequence, move.to);
    return this.kv.move(move.from, move.to, sequence.computed);
  }

  #sit(sequence: Sequence, slot: number): void {
    sequence.slot = slot;
    this.decoding[slot] = sequence;
  }

  #release(slot: number, request: OpenRequest, intact = true): void {
    this.kv.release(slot, intact && request.submission.cachePrompt);
  }
}
