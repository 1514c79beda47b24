/**
 * What waits for a slot. Bounded; fair between tenants by weighted virtual time (start-time fair queueing, Goyal et
 * al. 1996): each tenant's clock advances by cost ÷ weight of what it was given, and the tenant that is furthest
 * behind is served next. Inside one tenant first come, first served.
 */
export interface Waiting {
  readonly tenantId: string;
  /** Share relative to other tenants; greater than zero. */
  readonly weight: number;
  /** Tokens it may use: prompt and completion. */
  readonly cost: number;
}

interface Tenant<T> {
  readonly items: T[];
  /** Tokens ÷ weight given so far, on the queue's own clock. */
  time: number;
  /** Where it started when it last began to wait; what it is given back takes it no further. */
  since: number;
}

export class WaitingQueue<T extends Waiting> {
  readonly #limit: number;
  readonly #tenants = new Map<string, Tenant<T>>();
  /** Whom each taken item was charged to, for `refund`. */
  readonly #charged = new WeakMap<T, Tenant<T>>();
  /** Time of the tenant served last, when it was. */
  #time = 0;
  #length = 0;

  /** @param limit items that may wait beyond those about to be taken */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * True when `count` more items of a tenant fit, `free` of which could leave at once; when `free` is negative, so many
   * others will come first. The last quarter of the queue is open only to tenants within an equal share of it, one
   * newcomer's included, so that nobody can shut out the others. An empty queue takes any number.
   * @param expected by tenant, items that were promised a place and are still to come
   */
  hasRoom(tenantId: string, count: number, free: number, expected: ReadonlyMap<string, number>): boolean {
    if (this.#length === 0 && free >= 0) return count <= free || this.#limit > 0;
    const length = this.#length + count - free;
    if (length <= Math.ceil(0.75 * this.#limit)) return true;
    const own = (this.#tenants.get(tenantId)?.items.length ?? 0) + (expected.get(tenantId) ?? 0);
    const sharing = new Set([tenantId, ...expected.keys()]);
    for (const [id, { items }] of this.#tenants) if (items.length > 0) sharing.add(id);
    return length <= this.#limit && own + count <= Math.max(1, this.#limit / (sharing.size + 1));
  }

  push(item: T): void {
    let tenant = this.#tenants.get(item.tenantId);
    if (tenant === undefined) {
      tenant = { items: [], time: 0, since: 0 };
      this.#tenants.set(item.tenantId, tenant);
    }
    if (tenant.items.length === 0) {
      tenant.since = this.#start();
      tenant.time = Math.max(tenant.time, tenant.since);
    }
    tenant.items.push(item);
    this.#length++;
  }

  /** The next item, or null when nothing waits. */
  take(): T | null {
    const tenant = this.#next();
    const item = tenant?.items.shift();
    if (tenant === undefined || item === undefined) return null;
    this.#length--;
    this.#time = tenant.time;
    tenant.time += item.cost / item.weight;
    this.#charged.set(item, tenant);
    this.#forgetWhenEmpty();
    return item;
  }

  /** Gives back what a taken item did not use in the end. */
  refund(item: T, cost: number): void {
    const tenant = this.#charged.get(item);
    if (tenant !== undefined) tenant.time = Math.max(tenant.since, tenant.time - cost / item.weight);
  }

  /** Removes the waiting items that match and returns how many there were. */
  remove(tenantId: string, matches: (item: T) => boolean): number {
    const tenant = this.#tenants.get(tenantId);
    if (tenant === undefined) return 0;
    const kept = tenant.items.filter((item) => !matches(item));
    const removed = tenant.items.length - kept.length;
    tenant.items.splice(0, tenant.items.length, ...kept);
    this.#length -= removed;
    this.#forgetWhenEmpty();
    return removed;
  }

  /**
   * Where whoever begins to wait starts, so that idling earns nothing. Tenants served before may have been given back what
   * they were charged: nobody waits until they have caught up with that.
   */
  #start(): number {
    return Math.min(this.#time, this.#next()?.time ?? 0);
  }

  #next(): Tenant<T> | undefined {
    let best: Tenant<T> | undefined;
    for (const tenant of this.#tenants.values()) {
      if (tenant.items.length > 0 && (best === undefined || tenant.time < best.time)) best = tenant;
    }
    return best;
  }

  /** With nothing waiting there is nothing to share: everybody starts anew, and the table does not grow. */
  #forgetWhenEmpty(): void {
    if (this.#length > 0) return;
    this.#tenants.clear();
    this.#time = 0;
  }
}
