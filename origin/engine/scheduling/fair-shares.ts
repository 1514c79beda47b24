interface Tenant {
  readonly tenantId: string;
  readonly weight: number;
}

/** The fair shares of the tenants that hold or want slots: slots · weight ÷ all weights, rounded up. */
export class FairShares {
  /** By tenant, slots held. */
  readonly held: ReadonlyMap<string, number>;
  readonly #slots: number;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #allWeights: number;

  /**
   * @param holders one entry per slot held
   * @param waiting tenants that want slots
   */
  constructor(slots: number, holders: readonly Tenant[], waiting: readonly Tenant[]) {
    const held = new Map<string, number>();
    for (const { tenantId } of holders) held.set(tenantId, (held.get(tenantId) ?? 0) + 1);
    this.held = held;
    this.#slots = slots;
    this.#weights = new Map([...holders, ...waiting].map(({ tenantId, weight }) => [tenantId, weight]));
    this.#allWeights = [...this.#weights.values()].reduce((sum, weight) => sum + weight, 0);
  }

  /** True for a tenant that holds more than its share: it keeps at least one slot when it gives one up. */
  isAbove(tenantId: string): boolean {
    return this.#heldBy(tenantId) > this.#shareOf(tenantId);
  }

  isBelow(tenantId: string): boolean {
    return this.#heldBy(tenantId) < this.#shareOf(tenantId);
  }

  #heldBy(tenantId: string): number {
    return this.held.get(tenantId) ?? 0;
  }

  #shareOf(tenantId: string): number {
    return Math.ceil((this.#slots * (this.#weights.get(tenantId) ?? 0)) / this.#allWeights);
  }
}
