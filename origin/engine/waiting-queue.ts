/** An item of the waiting queue. */
export interface QueueItem {
  readonly tenantId: string;
  /** Share relative to other tenants; greater than zero. */
  readonly weight: number;
  /** Tokens it may use: prompt and completion. */
  readonly cost: number;
}

interface Tenant<T> {
  readonly items: T[];
  /** Virtual time: cost ÷ weight of the items taken so far. */
  time: number;
  /** Virtual time at which it last began to wait; refunds never go back further. */
  since: number;
}

/**
 * Holds requests that wait for a slot. It is bounded, and fair between tenants by weighted virtual time (start-time fair queueing,
 * Goyal et al. 1996). Each item taken advances its tenant's time by cost ÷ weight. The tenant with the earliest time is
 * served next. Within a tenant the order is first in, first out.
 */
export class WaitingQueue<T extends QueueItem> {
  readonly #limit: number;
  readonly #tenants = new Map<string, Tenant<T>>();
  /** The tenant charged for each taken item, for `refund`. */
  readonly #charged = new WeakMap<T, Tenant<T>>();
  /** Virtual time of the last served tenant when it was served. */
  #time = 0;
  #length = 0;

  /** @param limit items that may wait, in addition to those that can leave at once */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Returns whether `count` more items of a tenant fit.
   *
   * The last quarter of the queue is open only to tenants within an equal share of it, counting one possible newcomer, so
   * that a tenant cannot shut out the others. An empty queue takes any number.
   * @param free items that could leave at once; if negative, so many reserved items come first
   * @param reserved by tenant, items that have been admitted and are not in the queue yet
   */
  hasRoom(tenantId: string, count: number, free: number, reserved: ReadonlyMap<string, number>): boolean {
    if (this.#length === 0 && free >= 0) return count <= free || this.#limit > 0;
    const length = this.#length + count - free;
    if (length <= Math.ceil(0.75 * this.#limit)) return true;
    const own = (this.#tenants.get(tenantId)?.items.length ?? 0) + (reserved.get(tenantId) ?? 0);
    const sharing = new Set([tenantId, ...reserved.keys()]);
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
      tenant.since = this.#startTime();
      tenant.time = Math.max(tenant.time, tenant.since);
    }
    tenant.items.push(item);
    this.#length++;
  }

  /** Removes and returns the next item; null if the queue is empty. */
  take(): T | null {
    const tenant = this.#nextTenant();
    const item = tenant?.items.shift();
    if (tenant === undefined || item === undefined) return null;
    this.#length--;
    this.#time = tenant.time;
    tenant.time += item.cost / item.weight;
    this.#charged.set(item, tenant);
    this.#resetIfEmpty();
    return item;
  }

  /** Credits the part of a taken item's cost that it did not use. */
  refund(item: T, cost: number): void {
    const tenant = this.#charged.get(item);
    if (tenant !== undefined) tenant.time = Math.max(tenant.since, tenant.time - cost / item.weight);
  }

  /** Removes the matching items of a tenant and returns their number. */
  remove(tenantId: string, matches: (item: T) => boolean): number {
    const tenant = this.#tenants.get(tenantId);
    if (tenant === undefined) return 0;
    const kept = tenant.items.filter((item) => !matches(item));
    const removed = tenant.items.length - kept.length;
    tenant.items.splice(0, tenant.items.length, ...kept);
    this.#length -= removed;
    this.#resetIfEmpty();
    return removed;
  }

  /**
   * Virtual time at which a tenant begins to wait: idle tenants collect no credit. Refunds may have moved waiting tenants
   * behind `#time`; a new tenant does not wait until they have caught up.
   */
  #startTime(): number {
    return Math.min(this.#time, this.#nextTenant()?.time ?? 0);
  }

  #nextTenant(): Tenant<T> | undefined {
    let next: Tenant<T> | undefined;
    for (const tenant of this.#tenants.values()) {
      if (tenant.items.length > 0 && (next === undefined || tenant.time < next.time)) next = tenant;
    }
    return next;
  }

  /** An empty queue has nothing to share: all tenants start anew, and the table does not grow. */
  #resetIfEmpty(): void {
    if (this.#length > 0) return;
    this.#tenants.clear();
    this.#time = 0;
  }
}
