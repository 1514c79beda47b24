import { fitsThreshold } from '@continuo/shared/dynamic-threshold.ts';
import { VirtualTimes } from '@continuo/shared/virtual-times.ts';

interface Tenant {
  readonly tenantId: string;
  /** Share relative to other tenants; greater than zero. */
  readonly weight: number;
}

/** A sequence that waits for a slot or holds one. */
export interface SlotSequence {
  readonly request: Tenant;
  /** Tokens that it may still use, prompt and completion, when it last took or left a slot. */
  cost: number;
  /** Its place in the order of first starts; 0 = never started. */
  order: number;
}

/** A request in the waiting queue. Its sequences leave one by one; it counts once until the last has left. */
export interface WaitingRequest<Sequence extends SlotSequence> extends Tenant {
  /** Sequences that have not left. */
  readonly waiting: number;
  /** Removes and returns the next of them. */
  takeSequence(): Sequence;
}

/** What waits of a tenant. */
interface Line<Sequence, Request> {
  requests: Request[];
  /** Sequences that were put back. They leave before the requests. */
  returned: Sequence[];
}

/** The waiting requests of a tenant may take this many times the places that are free. */
const PLACES_PER_FREE_PLACE = 3;
/** Places for a limit: so a tenant alone may take the whole limit, and others still find places. */
const placesOf = (limit: number): number =>
  Math.floor(((PLACES_PER_FREE_PLACE + 1) * limit) / PLACES_PER_FREE_PLACE);

/**
 * Holds requests whose sequences wait for a slot, and shares the slots between tenants. It is bounded, and
 * fair by virtual time: a tenant is charged for the tokens of its sequences when these leave their slots. The
 * tenant with the earliest time is served next, unless it holds its share of the slots. Within a tenant the
 * order is first in, first out, and sequences that have been put back come first. The caller tells which
 * sequences hold a slot.
 */
export class WaitingQueue<
  Sequence extends SlotSequence,
  Request extends WaitingRequest<Sequence> = WaitingRequest<Sequence>,
> {
  readonly #slots: number;
  readonly #places: number;
  /** By tenant that waits. */
  readonly #lines = new Map<string, Line<Sequence, Request>>();
  readonly #times = new VirtualTimes();
  #lastOrder = 0;
  /** The sequences taken since the queue was last empty. Those before took nothing from anybody. */
  #contended = new WeakSet<Sequence>();

  /**
   * @param limit requests of one tenant that may wait, in addition to those that can leave at once; those of
   *   all tenants may be a third more
   */
  constructor(slots: number, limit: number) {
    this.#slots = slots;
    this.#places = placesOf(limit);
  }

  /** Waiting requests; sequences that have been put back do not count. */
  get length(): number {
    return sum(this.#lines.values(), ({ requests }) => requests.length);
  }

  /** Sequences that have been put back. */
  get returned(): number {
    return sum(this.#lines.values(), ({ returned }) => returned.length);
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /**
   * Returns whether one more request of a tenant fits.
   * @param free slots that are free; so many requests of `preparing` need no place
   * @param preparing by tenant, requests that have been admitted and are not in the queue yet
   */
  hasRoom(tenantId: string, free: number, preparing: ReadonlyMap<string, number>): boolean {
    const all = this.length + sum(preparing.values(), (count) => count);
    const waiting = (this.#lines.get(tenantId)?.requests.length ?? 0) + (preparing.get(tenantId) ?? 0);
    const freePlaces = this.#places - Math.max(0, all - free);
    return fitsThreshold(Math.max(0, waiting - free), 1, freePlaces, PLACES_PER_FREE_PLACE);
  }

  push(request: Request): void {
    this.#line(request.tenantId).requests.push(request);
  }

  /** Puts back a sequence that leaves its slot. Within its tenant, the one that started first comes first. */
  putBack(sequence: Sequence, unused: number): void {
    this.charge(sequence, unused);
    const { returned } = this.#line(sequence.request.tenantId);
    const after = returned.findIndex(({ order }) => sequence.order < order);
    returned.splice(after < 0 ? returned.length : after, 0, sequence);
  }

  /** Removes a request and its sequences that wait. */
  remove(request: Request): void {
    const line = this.#lines.get(request.tenantId);
    if (line === undefined) return;
    line.requests = line.requests.filter((waiting) => waiting !== request);
    line.returned = line.returned.filter((sequence) => sequence.request !== request);
    this.#closeIfEmpty(request.tenantId, line);
  }

  /**
   * Removes and returns the next sequence; null if the queue is empty. While others wait, a tenant gets no
   * more than its share of the slots, rounded up. So if a slot is free, a waiting tenant holds less than its
   * share.
   */
  take(holders: readonly Sequence[]): Sequence | null {
    const waiting = this.#tenants;
    const below = this.#below(this.#beyondShare(holders));
    const due = below.size > 0 ? below : this.#below(beyondShare(this.#slots, holders, waiting));
    const next = this.#times.first(due);
    if (next === null) return null;
    this.#times.serve(next, 0);
    // A tenant that holds its share collects no credit while it is passed over.
    for (const { tenantId } of waiting) if (!due.has(tenantId)) this.#times.begin(tenantId);
    const line = this.#lines.get(next)!;
    const { requests, returned } = line;
    const sequence = returned.shift() ?? requests[0]!.takeSequence();
    if (requests[0]?.waiting === 0) requests.shift();
    if (sequence.order === 0) sequence.order = ++this.#lastOrder;
    this.#contended.add(sequence);
    this.#closeIfEmpty(next, line);
    return sequence;
  }

  /**
   * Returns the sequence that has run longest of tenants above their share, if a waiting tenant is below its
   * own.
   */
  victim(holders: readonly Sequence[]): Sequence | null {
    const beyond = this.#beyondShare(holders);
    if (this.#below(beyond).size === 0) return null;
    const above = holders.filter(({ request }) => beyond(request.tenantId) >= 1);
    return above.toSorted((a, b) => a.order - b.order)[0] ?? null;
  }

  /** Returns whether a tenant that waits with one request is the only one below its share. */
  isNext(tenantId: string, holders: readonly Sequence[]): boolean {
    const below = this.#below(this.#beyondShare(holders));
    if (below.size !== 1 || !below.has(tenantId)) return false;
    const { requests, returned } = this.#lines.get(tenantId)!;
    return requests.length + returned.length === 1;
  }

  /** Charges a sequence that leaves its slot. @param unused the part of its cost that it has not used */
  charge(sequence: Sequence, unused: number): void {
    const { tenantId, weight } = sequence.request;
    if (this.#contended.has(sequence)) this.#times.charge(tenantId, (sequence.cost - unused) / weight);
    sequence.cost = unused;
  }

  /** The tenants that wait, with the weight of what leaves next. */
  get #tenants(): readonly Tenant[] {
    return [...this.#lines].map(([tenantId, { requests, returned }]) => {
      const { weight } = returned[0]?.request ?? requests[0]!;
      return { tenantId, weight };
    });
  }

  /** Compares tenants with their shares among all that wait or hold slots. */
  #beyondShare(holders: readonly Sequence[]): (tenantId: string) => number {
    const tenants = [...holders.map(({ request }) => request), ...this.#tenants];
    return beyondShare(this.#slots, holders, tenants);
  }

  /** Returns the waiting tenants that hold less than their shares. */
  #below(beyond: (tenantId: string) => number): ReadonlySet<string> {
    return new Set([...this.#lines.keys()].filter((tenantId) => beyond(tenantId) < 0));
  }

  /** Returns the line of a tenant, which waits from now on. */
  #line(tenantId: string): Line<Sequence, Request> {
    const existing = this.#lines.get(tenantId);
    if (existing !== undefined) return existing;
    const line = { requests: [], returned: [] };
    this.#lines.set(tenantId, line);
    this.#times.begin(tenantId);
    return line;
  }

  /** An empty queue has nothing to share: all tenants start anew. */
  #closeIfEmpty(tenantId: string, { requests, returned }: Line<Sequence, Request>): void {
    if (requests.length + returned.length === 0) this.#lines.delete(tenantId);
    if (!this.isEmpty) return;
    this.#times.clear();
    this.#contended = new WeakSet();
  }
}

function sum<T>(list: Iterable<T>, amountOf: (item: T) => number): number {
  let total = 0;
  for (const item of list) total += amountOf(item);
  return total;
}

/**
 * Returns by how many slots a tenant is beyond its share among `tenants`: slots · weight ÷ all weights. Below
 * zero = it may have more; one or more = it keeps its share if it gives up a slot.
 */
function beyondShare(slots: number, holders: readonly SlotSequence[], tenants: readonly Tenant[]) {
  const weights = new Map(tenants.map(({ tenantId, weight }) => [tenantId, weight]));
  const all = sum(weights.values(), (weight) => weight);
  const held = new Map<string, number>();
  for (const { request } of holders) held.set(request.tenantId, (held.get(request.tenantId) ?? 0) + 1);
  return (tenantId: string): number => (held.get(tenantId) ?? 0) - (slots * weights.get(tenantId)!) / all;
}
