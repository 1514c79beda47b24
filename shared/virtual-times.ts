interface Account {
  time: number;
  /** When it was last charged, or began: a counter. */
  turn: number;
}

/**
 * The virtual times of tenants that share something: what each has had, divided by its weight. The tenant
 * with the earliest time comes next (start-time fair queueing; Goyal, Vin and Cheng 1996). Pure.
 *
 * A cost, divided by the weight of its tenant, is charged when it is known: before or after the work. A
 * tenant that was idle starts at `now`, so it collects no credit.
 */
export class VirtualTimes {
  /**
   * Where a tenant starts. The owner moves it: to the time of the tenant that it serves, by a share of the
   * work, or with a clock.
   */
  now = 0;
  readonly #accounts = new Map<string, Account>();
  #lastTurn = 0;

  /** Returns how far a tenant is ahead of `now`; below zero = it is behind. */
  lead(tenantId: string): number {
    return (this.#accounts.get(tenantId)?.time ?? this.now) - this.now;
  }

  /**
   * Returns the tenant that comes next, of equal ones the one that was charged longest ago; null if there is
   * none.
   */
  first(tenants: Iterable<string>): string | null {
    let first: string | null = null;
    for (const tenant of tenants) {
      const { time, turn } = this.#account(tenant);
      const best = first === null ? null : this.#account(first);
      if (best === null || time < best.time || (time === best.time && turn < best.turn)) first = tenant;
    }
    return first;
  }

  /** Notes that a tenant begins to have work, or could not use its credit. */
  begin(tenantId: string): void {
    const account = this.#account(tenantId);
    account.time = Math.max(account.time, this.now);
  }

  /** @param maxLead the tenant gets no further ahead of `now` */
  charge(tenantId: string, cost: number, maxLead = Infinity): void {
    const account = this.#account(tenantId);
    account.time = Math.min(account.time + cost, this.now + maxLead);
    account.turn = ++this.#lastTurn;
  }

  /** Moves `now` to the start of the work of the tenant that is served. @param cost what is known of it */
  serve(tenantId: string, cost: number): void {
    this.now = this.#account(tenantId).time;
    this.charge(tenantId, cost);
  }

  /** Moves `now` to where tenants are: what all have gained or lost together is no debt of one of them. */
  settle(): void {
    const times = [...this.#accounts.values()].map(({ time }) => time);
    if (times.length > 0) this.now = Math.max(Math.min(...times), Math.min(this.now, Math.max(...times)));
  }

  /** Forgets the tenants that are not ahead, except those with work. */
  forget(working: { has(tenantId: string): boolean } = new Set()): void {
    for (const [tenantId, { time }] of this.#accounts)
      if (time <= this.now && !working.has(tenantId)) this.#accounts.delete(tenantId);
  }

  /** Begins anew, because no tenant waits. */
  clear(): void {
    this.now = 0;
    this.#accounts.clear();
  }

  #account(tenantId: string): Account {
    const account = this.#accounts.get(tenantId) ?? { time: this.now, turn: ++this.#lastTurn };
    this.#accounts.set(tenantId, account);
    return account;
  }
}
