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

/** A sequence that has left the queue, and the cost that it is charged when it leaves it again. */
interface Returned<Sequence> {
  readonly sequence: Sequence;
  readonly cost: number;
  readonly weight: number;
}

interface Tenant<Sequence, Request> {
  readonly id: string;
  readonly requests: Request[];
  /** Leave before the requests. */
  returned: Returned<Sequence>[];
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
 * first in, first out, and sequences that have been put back come first.
 */
export class WaitingQueue<
  Sequence extends ChargedSequence,
  Request extends WaitingRequest<Sequence> = WaitingRequest<Sequence>,
> {
  readonly #limit: number;
  readonly #tenants = new Map<string, Tenant<Sequence, Request>>();
  /** The tenant charged for each taken sequence and its weight, for `refund`. */
  readonly #charged = new WeakMap<
    Sequence,
    { readonly tenant: Tenant<Sequence, Request>; readonly weight: number }
  >();
  /** Virtual time of the last served tenant when it was served. */
  #time = 0;
  #length = 0;
  #returned = 0;

  /** @param limit requests that may wait, in addition to those that can leave at once */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Waiting requests; sequences that have been put back do not count. */
  get length(): number {
    return this.#length;
  }

  /** Sequences that have been put back. */
  get returned(): number {
    return this.#returned;
  }

  get isEmpty(): boolean {
    return this.#length + this.#returned === 0;
  }

  /** Tenants that wait, with the weight of their next request, and how many requests and returned sequences they have here. */
  get tenants(): readonly { readonly tenantId: string; readonly weight: number; readonly length: number }[] {
    return this.#waitingTenants().map((tenant) => {
      const { id: tenantId, requests, returned } = tenant;
      return { tenantId, weight: weightOf(tenant), length: requests.length + returned.length };
    });
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
    this.#waitingTenant(request.tenantId).requests.push(request);
    this.#length++;
  }

  /**
   * Puts back a sequence that has been taken, in the order of `isBefore` among those put back.
   * @param cost the part of its cost that it has not used: credited now, charged when it is taken again
   */
  putBack(sequence: Sequence, cost: number, isBefore: (other: Sequence) => boolean): void {
    const charged = this.#charged.get(sequence);
    if (charged === undefined) throw new Error('a sequence was put back that had not been taken');
    const { weight } = charged;
    this.refund(sequence, cost);
    const tenant = this.#waitingTenant(charged.tenant.id);
    const after = tenant.returned.findIndex((other) => isBefore(other.sequence));
    tenant.returned.splice(after < 0 ? tenant.returned.length : after, 0, { sequence, cost, weight });
    this.#returned++;
  }

  /** Removes a sequence that has been put back. */
  withdraw(sequence: Sequence): void {
    const { returned } = this.#tenants.get(this.#charged.get(sequence)?.tenant.id ?? '') ?? {};
    const at = returned?.findIndex((other) => other.sequence === sequence) ?? -1;
    if (at < 0) return;
    returned!.splice(at, 1);
    this.#returned--;
    this.#resetIfEmpty();
  }

  /** Returns the tenant, which waits from now on. */
  #waitingTenant(id: string): Tenant<Sequence, Request> {
    let tenant = this.#tenants.get(id);
    if (tenant === undefined) {
      tenant = { id, requests: [], returned: [], time: 0, since: 0 };
      this.#tenants.set(id, tenant);
    }
    if (!isWaiting(tenant)) {
      tenant.since = this.#startTime();
      tenant.time = Math.max(tenant.time, tenant.since);
    }
    return tenant;
  }

  /**
   * Removes and returns the next sequence; null if the queue is empty. While others wait, a tenant gets no more than its
   * share of the slots, rounded up. So if a slot is free, a waiting tenant holds less than its share.
   * @param held by tenant, slots in use
   * @param mayTake false for tenants to pass over, as if they held their share
   */
  take(
    slots: number,
    held: ReadonlyMap<string, number>,
    mayTake: (tenantId: string) => boolean = () => true,
  ): Sequence | null {
    const waiting = this.#waitingTenants();
    const weights = waiting.reduce((sum, tenant) => sum + weightOf(tenant), 0);
    const hasShare = (tenant: Tenant<Sequence, Request>) =>
      !mayTake(tenant.id) || (held.get(tenant.id) ?? 0) >= (slots * weightOf(tenant)) / weights;
    const tenant = earliest(waiting.filter((candidate) => !hasShare(candidate)));
    if (tenant === undefined) return null;
    this.#time = tenant.time;
    // A tenant that holds its share collects no credit while it is passed over.
    for (const other of waiting) if (hasShare(other)) other.time = Math.max(other.time, this.#time);
    const { sequence, cost, weight } = this.#takeFrom(tenant);
    tenant.time += cost / weight;
    this.#charged.set(sequence, { tenant, weight });
    this.#resetIfEmpty();
    return sequence;
  }

  #takeFrom({ requests, returned }: Tenant<Sequence, Request>): Returned<Sequence> {
    const first = returned.shift();
    if (first !== undefined) {
      this.#returned--;
      return first;
    }
    const request = requests[0]!;
    const sequence = request.takeSequence();
    if (request.waiting === 0) {
      requests.shift();
      this.#length--;
    }
    return { sequence, cost: sequence.cost, weight: request.weight };
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

  #waitingTenants(): Tenant<Sequence, Request>[] {
    return [...this.#tenants.values()].filter(isWaiting);
  }

  /** An empty queue has nothing to share: all tenants start anew, and the table does not grow. */
  #resetIfEmpty(): void {
    if (!this.isEmpty) return;
    this.#tenants.clear();
    this.#time = 0;
  }
}

type AnyTenant = Tenant<unknown, { readonly weight: number }>;

const isWaiting = ({ requests, returned }: AnyTenant): boolean => requests.length + returned.length > 0;

const weightOf = ({ requests, returned }: AnyTenant): number => (returned[0] ?? requests[0])?.weight ?? 0;

/** Returns the tenant with the earliest time; of equal ones the first. */
function earliest<T extends { readonly time: number }>(tenants: readonly T[]): T | undefined {
  return tenants.reduce<T | undefined>(
    (best, tenant) => (best === undefined || tenant.time < best.time ? tenant : best),
    undefined,
  );
}
