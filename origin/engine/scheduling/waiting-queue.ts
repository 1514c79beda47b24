/** A sequence that has left the waiting queue. */
export interface ChargedSequence {
  /** Tokens it may use: prompt and completion. */
  readonly cost: number;
}

/** A request in the waiting queue. Its sequences leave one by one; it counts once until the last has left. */
export interface WaitingRequest<Sequence extends ChargedSequence> {
  readonly tenantId: string;
  /** Share relative to other tenants; greater than zero. */
  readonly weight: number;
  /** Sequences that have not left. */
  readonly waiting: number;
  /** Removes and returns the next of them. */
  takeSequence(): Sequence;
}

interface Tenant<Request> {
  readonly id: string;
  readonly requests: Request[];
  /** Virtual time: cost ÷ weight of the sequences taken so far. */
  time: number;
  /** Virtual time at which it last began to wait; refunds never go back further. */
  since: number;
}

/** The waiting requests of a tenant may take this many times the places that are free. */
const PLACES_PER_FREE_PLACE = 3;

/**
 * Holds requests whose sequences wait for a slot. It is bounded, and fair between tenants by weighted virtual time
 * (start-time fair queueing, Goyal et al. 1996). Each sequence taken advances its tenant's time by cost ÷ weight. The
 * tenant with the earliest time is served next, unless it holds its share of the slots. Within a tenant the order is
 * first in, first out.
 */
export class WaitingQueue<
  Sequence extends ChargedSequence,
  Request extends WaitingRequest<Sequence> = WaitingRequest<Sequence>,
> {
  readonly #limit: number;
  readonly #tenants = new Map<string, Tenant<Request>>();
  /** The tenant charged for each taken sequence and its weight, for `refund`. */
  readonly #charged = new WeakMap<Sequence, { readonly tenant: Tenant<Request>; readonly weight: number }>();
  /** Virtual time of the last served tenant when it was served. */
  #time = 0;
  #length = 0;

  /** @param limit requests that may wait, in addition to those that can leave at once */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Waiting requests. */
  get length(): number {
    return this.#length;
  }

  /**
   * Returns whether one more request of a tenant fits. The threshold is dynamic (Choudhury and Hahne 1998): each of n
   * tenants can fill 3 ÷ (3n + 1) of the queue. A part stays free for tenants that have nothing in it.
   * @param free slots that are free; so many requests of `preparing` need no place
   * @param preparing by tenant, requests that have been admitted and are not in the queue yet
   */
  hasRoom(tenantId: string, free: number, preparing: ReadonlyMap<string, number>): boolean {
    let waiting = this.#length;
    for (const count of preparing.values()) waiting += count;
    const freePlaces = this.#limit - Math.max(0, waiting - free);
    const own = (this.#tenants.get(tenantId)?.requests.length ?? 0) + (preparing.get(tenantId) ?? 0);
    return Math.max(0, own - free) < PLACES_PER_FREE_PLACE * freePlaces;
  }

  push(request: Request): void {
    const id = request.tenantId;
    let tenant = this.#tenants.get(id);
    if (tenant === undefined) {
      tenant = { id, requests: [], time: 0, since: 0 };
      this.#tenants.set(id, tenant);
    }
    if (tenant.requests.length === 0) {
      tenant.since = this.#startTime();
      tenant.time = Math.max(tenant.time, tenant.since);
    }
    tenant.requests.push(request);
    this.#length++;
  }

  /**
   * Removes and returns the next sequence; null if the queue is empty. While others wait, a tenant gets no more than its
   * share of the slots, rounded up. So if a slot is free, a waiting tenant holds less than its share.
   * @param held by tenant, slots in use
   */
  take(slots: number, held: ReadonlyMap<string, number>): Sequence | null {
    const waiting = this.#waitingTenants();
    const weights = waiting.reduce((sum, tenant) => sum + weightOf(tenant), 0);
    const hasShare = (tenant: Tenant<Request>) =>
      (held.get(tenant.id) ?? 0) >= (slots * weightOf(tenant)) / weights;
    const tenant = earliest(waiting.filter((candidate) => !hasShare(candidate)));
    const request = tenant?.requests[0];
    if (tenant === undefined || request === undefined) return null;
    const sequence = request.takeSequence();
    this.#time = tenant.time;
    // A tenant that holds its share collects no credit while it is passed over.
    for (const other of waiting) if (hasShare(other)) other.time = Math.max(other.time, this.#time);
    tenant.time += sequence.cost / request.weight;
    this.#charged.set(sequence, { tenant, weight: request.weight });
    if (request.waiting === 0) this.remove(request);
    return sequence;
  }

  /** Credits the part of a taken sequence's cost that it did not use. */
  refund(sequence: Sequence, cost: number): void {
    const charged = this.#charged.get(sequence);
    if (charged === undefined) return;
    const { tenant, weight } = charged;
    tenant.time = Math.max(tenant.since, tenant.time - cost / weight);
  }

  /** Removes a request with its waiting sequences, if it is in the queue. */
  remove(request: Request): void {
    const requests = this.#tenants.get(request.tenantId)?.requests;
    const at = requests?.indexOf(request) ?? -1;
    if (at < 0) return;
    requests!.splice(at, 1);
    this.#length--;
    this.#resetIfEmpty();
  }

  /**
   * Virtual time at which a tenant begins to wait: idle tenants collect no credit. Refunds may have moved waiting tenants
   * behind `#time`; a new tenant does not wait until they have caught up.
   */
  #startTime(): number {
    return Math.min(this.#time, earliest(this.#waitingTenants())?.time ?? 0);
  }

  #waitingTenants(): Tenant<Request>[] {
    return [...this.#tenants.values()].filter(({ requests }) => requests.length > 0);
  }

  /** An empty queue has nothing to share: all tenants start anew, and the table does not grow. */
  #resetIfEmpty(): void {
    if (this.#length > 0) return;
    this.#tenants.clear();
    this.#time = 0;
  }
}

function weightOf({ requests }: Tenant<{ readonly weight: number }>): number {
  return requests[0]?.weight ?? 0;
}

/** Returns the tenant with the earliest time; of equal ones the first. */
function earliest<Request>(tenants: readonly Tenant<Request>[]): Tenant<Request> | undefined {
  return tenants.reduce<Tenant<Request> | undefined>(
    (best, tenant) => (best === undefined || tenant.time < best.time ? tenant : best),
    undefined,
  );
}
