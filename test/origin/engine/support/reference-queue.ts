import type { WaitingRequest } from '../../../../origin/engine/scheduling/waiting-queue.ts';

/** A sequence of a request without content. */
export interface Item {
  readonly request: WaitingItems;
  /** Its place among the sequences of the request. */
  readonly index: number;
  cost: number;
  order: number;
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
    this.all = costs.map((cost, index) => ({ request: this, index, cost, order: 0 }));
  }

  get waiting(): number {
    return this.all.length - this.#taken;
  }

  takeSequence(): Item {
    return this.all[this.#taken++]!;
  }
}

/** What has happened to a tenant since the queue was last empty. */
type Entry = { readonly type: 'begin' | 'lift' | 'charge'; readonly time: number };

/**
 * A plain form of the waiting queue: every sequence is a row of one list, and a tenant's virtual time is
 * computed anew from all that happened to it.
 */
export class ReferenceQueue {
  #rows: Item[] = [];
  /** Rows that were put back. */
  readonly #returned = new Set<Item>();
  #history = new Map<string, Entry[]>();
  /** By sequence, the history that it belongs to. */
  readonly #historyOf = new Map<Item, Entry[]>();
  #lastServed = 0;

  get length(): number {
    return new Set(this.#rows.filter((row) => !this.#returned.has(row)).map(({ request }) => request)).size;
  }

  waitingTenants(): { id: string; weight: number }[] {
    const ids = [...new Set(this.#rows.map(({ request }) => request.tenantId))];
    return ids.map((id) => ({ id, weight: this.#first(id).request.weight }));
  }

  push(request: WaitingItems): void {
    this.#begin(request.tenantId);
    this.#rows.push(...request.all);
  }

  /** Puts back a sequence after those of its tenant that started before. */
  putBack(sequence: Item, used: number): void {
    this.charge(sequence, used);
    const { tenantId } = sequence.request;
    this.#begin(tenantId);
    const isLater = (row: Item) => !this.#returned.has(row) || row.order > sequence.order;
    const at = this.#rows.findIndex((row) => row.request.tenantId === tenantId && isLater(row));
    this.#rows.splice(at < 0 ? this.#rows.length : at, 0, sequence);
    this.#returned.add(sequence);
  }

  #begin(tenantId: string): void {
    const waits = this.#rows.some((row) => row.request.tenantId === tenantId);
    if (!waits) this.#note(tenantId, { type: 'begin', time: this.#lastServed });
  }

  take(slots: number, holders: readonly Item[]): Item | null {
    const waiting = this.waitingTenants();
    const held = (id: string) => holders.filter(({ request }) => request.tenantId === id).length;
    const weightOf = new Map(holders.map(({ request }) => [request.tenantId, request.weight]));
    for (const { id, weight } of waiting) weightOf.set(id, weight);
    const share = (id: string, weights: Iterable<number>) =>
      (slots * weightOf.get(id)!) / [...weights].reduce((sum, weight) => sum + weight, 0);
    const waitingWeights = waiting.map(({ weight }) => weight);
    let below = waiting.filter(({ id }) => held(id) < share(id, waitingWeights));
    // First those that have less than their share beside all that hold slots.
    const first = below.filter(({ id }) => held(id) < Math.ceil(share(id, weightOf.values())));
    if (first.length > 0) below = first;
    // Of equal times, the tenant that was served or charged longest ago.
    const known = [...this.#history.keys()];
    below.sort((a, b) => this.#time(a.id) - this.#time(b.id) || known.indexOf(a.id) - known.indexOf(b.id));
    const next = below[0];
    if (next === undefined) return null;
    const row = this.#first(next.id);
    this.#lastServed = this.#time(next.id);
    for (const { id } of waiting) {
      if (!below.some((tenant) => tenant.id === id)) this.#note(id, { type: 'lift', time: this.#lastServed });
    }
    this.#note(next.id, { type: 'charge', time: 0 });
    this.#historyOf.set(row, this.#history.get(next.id)!);
    this.#returned.delete(row);
    this.#drop((other) => other === row);
    return row;
  }

  charge(sequence: Item, used: number): void {
    const { tenantId, weight } = sequence.request;
    // A sequence that was taken before the queue was last empty is not charged.
    if (this.#historyOf.get(sequence) !== this.#history.get(tenantId)) return;
    this.#note(tenantId, { type: 'charge', time: used / weight });
  }

  remove(request: WaitingItems): void {
    this.#drop((row) => row.request === request);
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
    if (entry.type === 'charge') this.#history.delete(id);
    this.#history.set(id, entries);
  }

  #time(id: string): number {
    let time = 0;
    for (const { type, time: amount } of this.#history.get(id) ?? []) {
      time = type === 'charge' ? time + amount : Math.max(time, amount);
    }
    return time;
  }
}
