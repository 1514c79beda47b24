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
 * The waiting queues of the interactive and the flex class, and the choice of who gets a slot and who gives one up. Pure:
 * the caller tells which sequences hold a slot.
 *
 * While flex sequences exist, the class gets at least one slot: the next free one, unless it had the last. The others go to
 * interactive sequences first. A single slot changes hands after some steps. In each class, tenants share the slots of the
 * class.
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
    this.#interactive = new WaitingQueue(limit);
    this.#flex = new WaitingQueue(limit);
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

  /** Charges a sequence that leaves its slot for good. @param unused the part of its cost that it has not used */
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
      const next = this.#takeFrom(flex, holders);
      if (next === null) continue;
      this.#lastWasFlex = flex;
      this.#turnSteps = 0;
      return next;
    }
    return null;
  }

  /**
   * Returns the sequence that should give up its slot for a waiting one, if all slots are held; null if none should. Called
   * until it returns null, in every step.
   * Interactive sequences take the slots of the youngest flex sequences, except the last. A tenant below its share takes
   * those of the sequences that have run longest, of tenants above theirs.
   */
  victim(holders: readonly Sequence[]): Sequence | null {
    const flexHolders = holders.filter(({ request }) => request.flex);
    if (!this.#interactive.isEmpty && this.#giveUp(flexHolders.length)) return youngest(flexHolders);
    for (const flex of [false, true]) {
      const queue = this.#queueOf(flex);
      if (queue.isEmpty) continue;
      const shares = this.#sharesOf(flex, holders);
      if (!queue.tenants.some(({ tenantId }) => shares.isBelow(tenantId))) continue;
      const above = holders.filter(
        ({ request }) => request.flex === flex && shares.isAbove(request.tenantId),
      );
      if (above.length > 0) return oldest(above);
    }
    return null;
  }

  /** Returns whether an interactive request has one sequence, and the next slot that another one gives up is for it. */
  isNext({ tenantId, flex, waiting }: Request, holders: readonly Sequence[]): boolean {
    if (flex || waiting !== 1 || this.#slots === 1 || this.victim(holders) === null) return false;
    const shares = this.#sharesOf(false, holders);
    const due = this.#interactive.tenants.filter((tenant) => shares.isBelow(tenant.tenantId));
    return due.length === 1 && due[0]!.tenantId === tenantId && due[0]!.length === 1;
  }

  #giveUp(flexSlots: number): boolean {
    if (flexSlots === 1 && this.#slots === 1) return ++this.#turnSteps > FLEX_TURN_STEPS;
    return flexSlots > 1;
  }

  #takeFrom(flex: boolean, holders: readonly Sequence[]): Sequence | null {
    const queue = this.#queueOf(flex);
    if (queue.isEmpty) return null;
    const shares = this.#sharesOf(flex, holders);
    const belowShare = queue.take(this.#slots, shares.held, (tenantId) => shares.isBelow(tenantId));
    return belowShare ?? queue.take(this.#slots, shares.held);
  }

  /** The shares of the tenants that hold or want slots of a class. */
  #sharesOf(flex: boolean, holders: readonly Sequence[]): ReturnType<typeof fairShares> {
    const tenants = holders.map(({ request }) => request).filter((request) => request.flex === flex);
    return fairShares(this.#slots, tenants, this.#queueOf(flex).tenants);
  }

  #queueOf(flex: boolean): WaitingQueue<Sequence, Request> {
    return flex ? this.#flex : this.#interactive;
  }
}

const oldest = <S extends PrioritySequence>(sequences: readonly S[]): S =>
  sequences.reduce((best, one) => (one.order < best.order ? one : best));

const youngest = <S extends PrioritySequence>(sequences: readonly S[]): S =>
  sequences.reduce((best, one) => (one.order > best.order ? one : best));

type Tenant = Pick<PriorityRequest, 'tenantId' | 'weight'>;

/**
 * Compares the slots that tenants hold with their fair shares: slots · weight ÷ all weights, rounded up.
 * @param holders one entry per slot held
 * @param waiting tenants that want slots
 */
function fairShares(slots: number, holders: readonly Tenant[], waiting: readonly Tenant[]) {
  const held = new Map<string, number>();
  for (const { tenantId } of holders) held.set(tenantId, (held.get(tenantId) ?? 0) + 1);
  const weights = new Map([...holders, ...waiting].map(({ tenantId, weight }) => [tenantId, weight]));
  const allWeights = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  const heldBy = (tenantId: string) => held.get(tenantId) ?? 0;
  const shareOf = (tenantId: string) => Math.ceil((slots * (weights.get(tenantId) ?? 0)) / allWeights);
  return {
    held,
    /** True for a tenant that holds more than its share: it keeps at least one slot when it gives one up. */
    isAbove: (tenantId: string) => heldBy(tenantId) > shareOf(tenantId),
    isBelow: (tenantId: string) => heldBy(tenantId) < shareOf(tenantId),
  };
}
