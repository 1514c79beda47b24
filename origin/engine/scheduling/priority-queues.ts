import { type SlotSequence, WaitingQueue, type WaitingRequest } from './waiting-queue.ts';

export interface PriorityRequest {
  readonly tenantId: string;
  readonly weight: number;
  /** Runs in slots that no interactive request needs. */
  readonly flex: boolean;
}

export interface PrioritySequence extends SlotSequence {
  readonly request: PriorityRequest;
}

/** Steps that a flex sequence keeps the only slot while an interactive one waits. */
const FLEX_TURN_STEPS = 32;

/**
 * The waiting queues of the interactive and the flex class, and the choice of who gets a slot and who gives
 * one up. Pure: the caller tells which sequences hold a slot.
 *
 * While flex sequences exist, the class gets at least one slot: the next free one, unless it had the last.
 * The others go to interactive sequences first. A single slot changes hands after some steps. In each class,
 * tenants share the slots of the class.
 */
export class PriorityQueues<
  Sequence extends PrioritySequence,
  Request extends WaitingRequest<Sequence> & PriorityRequest,
> {
  readonly #slots: number;
  readonly #interactive: WaitingQueue<Sequence, Request>;
  readonly #flex: WaitingQueue<Sequence, Request>;
  #lastWasFlex = false;
  /** Steps of the flex sequence in the only slot in which an interactive one waited. */
  #turnSteps = 0;

  /** @param limit requests that may wait in each class */
  constructor(slots: number, limit: number) {
    this.#slots = slots;
    this.#interactive = new WaitingQueue(slots, limit);
    this.#flex = new WaitingQueue(slots, limit);
  }

  /** Waiting requests of both classes. */
  get length(): number {
    return this.#interactive.length + this.#flex.length;
  }

  get isEmpty(): boolean {
    return this.#interactive.isEmpty && this.#flex.isEmpty;
  }

  /** Sequences that have been put back. */
  get returned(): number {
    return this.#interactive.returned + this.#flex.returned;
  }

  /**
   * Returns whether a request can start at once or wait.
   * @param sequences of the request
   * @param free slots that its class can take now
   * @param preparing by tenant, requests of its class that have been admitted and are not in the queue yet
   */
  hasRoom(
    { tenantId, flex }: Pick<PriorityRequest, 'tenantId' | 'flex'>,
    sequences: number,
    free: number,
    preparing: ReadonlyMap<string, number>,
  ): boolean {
    const ahead = flex ? this.length : this.#interactive.length;
    const reserved = [...preparing.values()].reduce((sum, count) => sum + count, 0);
    return (
      (ahead === 0 && sequences <= free - reserved) || this.#queueOf(flex).hasRoom(tenantId, free, preparing)
    );
  }

  push(request: Request): void {
    this.#queueOf(request.flex).push(request);
  }

  /** Puts back a sequence that gave up its slot. */
  putBack(sequence: Sequence, unused: number): void {
    this.#queueOf(sequence.request.flex).putBack(sequence, unused);
  }

  /**
   * Charges a sequence that leaves its slot for good.
   * @param unused the part of its cost that it has not used
   */
  charge(sequence: Sequence, unused: number): void {
    this.#queueOf(sequence.request.flex).charge(sequence, unused);
  }

  remove(request: Request): void {
    this.#queueOf(request.flex).remove(request);
  }

  /** Returns the sequence for a free slot; null if none waits. */
  take(holders: readonly Sequence[]): Sequence | null {
    const flexIsDue = !this.#lastWasFlex && !holders.some(({ request }) => request.flex);
    for (const flex of flexIsDue ? [true, false] : [false, true]) {
      const next = this.#queueOf(flex).take(ofClass(flex, holders));
      if (next === null) continue;
      this.#lastWasFlex = flex;
      this.#turnSteps = 0;
      return next;
    }
    return null;
  }

  /**
   * Returns the sequence that should give up its slot for a waiting one, if all slots are held; null if none
   * should. Called until it returns null, in every step.
   * Interactive sequences take the slots of the youngest flex sequences, except the last. A tenant below its
   * share takes those of the sequences that have run longest, of tenants above theirs.
   */
  victim(holders: readonly Sequence[]): Sequence | null {
    const flexHolders = ofClass(true, holders);
    if (!this.#interactive.isEmpty && this.#giveUp(flexHolders.length))
      return flexHolders.toSorted((a, b) => b.order - a.order)[0]!;
    return this.#interactive.victim(ofClass(false, holders)) ?? this.#flex.victim(flexHolders);
  }

  /** Returns whether an interactive request has one sequence and gets the next slot that is given up. */
  isNext({ tenantId, flex, waiting }: Request, holders: readonly Sequence[]): boolean {
    if (flex || waiting !== 1 || this.#slots === 1 || this.victim(holders) === null) return false;
    return this.#interactive.isNext(tenantId, ofClass(false, holders));
  }

  #giveUp(flexSlots: number): boolean {
    if (flexSlots === 1 && this.#slots === 1) return ++this.#turnSteps > FLEX_TURN_STEPS;
    return flexSlots > 1;
  }

  #queueOf(flex: boolean): WaitingQueue<Sequence, Request> {
    return flex ? this.#flex : this.#interactive;
  }
}

const ofClass = <S extends PrioritySequence>(flex: boolean, sequences: readonly S[]): readonly S[] =>
  sequences.filter(({ request }) => request.flex === flex);
