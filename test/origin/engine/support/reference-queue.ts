import type { WaitingRequest } from '../../../../origin/engine/scheduling/waiting-queue.ts';

/** A sequence of a request without content. */
export interface Item {
  readonly request: WaitingItems;
  /** Its place among the sequences of the request. */
  readonly index: number;
  readonly cost: number;
}

/** A request without content: the costs of its sequences. */
export class WaitingItems implements WaitingRequest<Item> {
  readonly tenantId: string;
  readonly weight: number;
  readonly serial: number;
  readonly costs: readonly number[];
  /** The sequences, taken or not. */
  readonly all: readonly Item[];
  #taken = 0;

  constructor(tenantId: string, weight: number, serial: number, costs: readonly number[]) {
    this.tenantId = tenantId;
    this.weight = weight;
    this.serial = serial;
    this.costs = costs;
    this.all = costs.map((cost, index) => ({ request: this, index, cost }));
  }

  get waiting(): number {
    return this.all.length - this.#taken;
  }

  takeSequence(): Item {
    return this.all[this.#taken++]!;
  }
}

/** What has happened to a tenant since the queue was last empty. */
type Entry =
  | { readonly type: 'begin'; readonly time: number }
  | { readonly type: 'lift'; readonly time: number }
  | { readonly type: 'charge'; readonly amount: number }
  | { readonly type: 'refund'; readonly amount: number };

/**
 * A plain form of the waiting queue: every sequence is a row of one list, and a tenant's virtual time is computed anew
 * from all that happened to it.
 */
export class ReferenceQueue {
  #rows: Item[] = [];
  /** Rows that were put back, with the cost to charge. */
  #costs = new Map<Item, number>();
  #history = new Map<string, Entry[]>();
  #historyOf = new Map<Item, Entry[]>();
  #lastServed = 0;

  get length(): number {
    return new Set(this.#rows.filter((row) => !this.#costs.has(row)).map(({ request }) => request)).size;
  }

  waitingTenants(): { id: string; weight: number }[] {
    const ids = [...new Set(this.#rows.map(({ request }) => request.tenantId))];
    return ids.map((id) => ({ id, weight: this.#first(id).request.weight }));
  }

  push(request: WaitingItems): void {
    this.#begin(request.tenantId);
    this.#rows.push(...request.all);
  }

  /** Puts back a sequence after those of its tenant that were put back before. */
  putBack(sequence: Item, cost: number): void {
    this.refund(sequence, cost);
    const { tenantId } = sequence.request;
    this.#begin(tenantId);
    const isFirst = (row: Item) => row.request.tenantId === tenantId && !this.#costs.has(row);
    const at = this.#rows.findIndex(isFirst);
    this.#rows.splice(at < 0 ? this.#rows.length : at, 0, sequence);
    this.#costs.set(sequence, cost);
  }

  withdraw(sequence: Item): void {
    if (this.#costs.delete(sequence)) this.#drop((row) => row === sequence);
  }

  #begin(tenantId: string): void {
    const waits = this.#rows.some((row) => row.request.tenantId === tenantId);
    if (!waits) {
      const times = this.waitingTenants().map(({ id }) => this.#time(id));
      const time = Math.min(this.#lastServed, ...(times.length > 0 ? times : [0]));
      this.#note(tenantId, { type: 'begin', time });
    }
  }

  take(slots: number, held: ReadonlyMap<string, number>): Item | null {
    const waiting = this.waitingTenants();
    const weights = waiting.reduce((sum, { weight }) => sum + weight, 0);
    const below = waiting.filter(({ id, weight }) => (held.get(id) ?? 0) < (slots * weight) / weights);
    // Of equal times, the tenant that was known first.
    const known = [...this.#history.keys()];
    below.sort((a, b) => this.#time(a.id) - this.#time(b.id) || known.indexOf(a.id) - known.indexOf(b.id));
    const next = below[0];
    if (next === undefined) return null;
    const row = this.#first(next.id);
    this.#lastServed = this.#time(next.id);
    for (const { id } of waiting) {
      if (!below.some((tenant) => tenant.id === id)) this.#note(id, { type: 'lift', time: this.#lastServed });
    }
    this.#note(next.id, { type: 'charge', amount: (this.#costs.get(row) ?? row.cost) / next.weight });
    this.#costs.delete(row);
    this.#historyOf.set(row, this.#history.get(next.id)!);
    this.#drop((other) => other === row);
    return row;
  }

  refund(sequence: Item, cost: number): void {
    this.#historyOf.get(sequence)?.push({ type: 'refund', amount: cost / sequence.request.weight });
  }

  remove(request: WaitingItems): void {
    this.#drop((row) => row.request === request && !this.#costs.has(row));
  }

  #drop(matches: (row: Item) => boolean): void {
    if (this.#rows.length === 0) return;
    this.#rows = this.#rows.filter((row) => !matches(row));
    if (this.#rows.length > 0) return;
    this.#history = new Map();
    this.#lastServed = 0;
  }

  #first(id: string): Item {
    return this.#rows.find(({ request }) => request.tenantId === id)!;
  }

  #note(id: string, entry: Entry): void {
    const entries = this.#history.get(id) ?? [];
    entries.push(entry);
    this.#history.set(id, entries);
  }

  #time(id: string): number {
    let time = 0;
    let since = 0;
    for (const entry of this.#history.get(id) ?? []) {
      if (entry.type === 'begin') since = entry.time;
      if (entry.type === 'begin' || entry.type === 'lift') time = Math.max(time, entry.time);
      else if (entry.type === 'charge') time += entry.amount;
      else time = Math.max(since, time - entry.amount);
    }
    return time;
  }
}
