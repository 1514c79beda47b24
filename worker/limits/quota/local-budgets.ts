import type { Price } from '../usage/price.ts';
import { reservationId } from '../usage/reservation-id.ts';
import { eachOf, NOTHING } from './budget.ts';
import { HeldSlices } from './held-slices.ts';
import { Outbox } from './outbox.ts';
import type { Claimant, SettlementRequest, Spend } from './protocol.ts';
import { SliceDemand } from './slice-demand.ts';

/** A slice for running requests has at least so many tokens. */
const USEFUL_TOKENS = 64;

export const isSome = ({ tokens, money }: Spend): boolean => tokens > 0 || money > 0;

/** What a running request has from the latest slice that it was charged to. */
interface Charged {
  readonly keyId: string;
  readonly slice: number;
  readonly spend: Spend;
}

/**
 * What one isolate holds of a tenant's budgets, and what it decides without the object. Nothing in here
 * survives the isolate: the object counts a slice as used until the isolate reports. Pure: the clock is an
 * argument (Unix milliseconds).
 */
export class LocalBudgets {
  readonly slices = new HeldSlices();
  readonly demand = new SliceDemand();
  readonly outbox = new Outbox();
  readonly #running = new Map<string, Charged>();
  #isolate: string;
  #requests = 0;

  /** @param isolate random and unique */
  constructor(isolate: string) {
    this.#isolate = isolate;
  }

  get isolate(): string {
    return this.#isolate;
  }

  /** Returns whether nothing is left to tell the object, now or later. */
  get isQuiet(): boolean {
    return this.outbox.isEmpty && this.slices.isEmpty;
  }

  /** Returns a unique id for a request. It names its price and its slice; 0 = the object decides. */
  newId(name: string, price: Price | null, slice = 0): string {
    this.#requests += 1;
    return reservationId({ isolate: this.#isolate, slice, number: this.#requests, price, name });
  }

  /** Admits a request from the slice of its key. Returns its id; null if the object must decide. */
  admit(claimant: Claimant, name: string, now: number): string | null {
    const { keyId, tokens, money, model, price } = claimant;
    const spend = { tokens, money };
    this.demand.note(claimant, now);
    const cost = { requests: 1, slots: 1, tokens, money };
    const slice = this.outbox.isFull ? null : this.slices.take(keyId, cost, now);
    if (!slice) return null;
    const requestId = this.newId(name, price, slice.number);
    this.#running.set(requestId, { keyId, slice: slice.number, spend });
    this.outbox.add({ kind: 'admitted', requestId, slice: slice.number, model, ...spend, at: now });
    return requestId;
  }

  /**
   * Charges more of a running request to the slice of its key: all that the claimant wants, or as much as is
   * left. Returns what was charged.
   */
  extend(claimant: Claimant, requestId: string, whole: boolean, now: number): Spend {
    const { keyId } = claimant;
    const useful = Math.min(1, USEFUL_TOKENS / claimant.tokens);
    this.demand.note({ ...claimant, ...eachOf((name) => Math.ceil(claimant[name] * useful)) }, now);
    const left = this.outbox.isFull ? null : this.slices.of(keyId, now)?.left;
    if (!left) return NOTHING;
    const spend = eachOf((name) =>
      whole ? claimant[name] : Math.min(claimant[name], left[name] ?? Infinity),
    );
    const slice = isSome(spend) ? this.slices.take(keyId, spend, now) : null;
    if (!slice) return NOTHING;
    const before = this.#running.get(requestId);
    const spent = before?.slice === slice.number ? before.spend : NOTHING;
    const charged = eachOf((name) => spend[name] + spent[name]);
    this.#running.set(requestId, { keyId, slice: slice.number, spend: charged });
    this.outbox.add({ kind: 'extended', requestId, slice: slice.number, ...spend });
    return spend;
  }

  /** @param unused what the request has reserved and not spent */
  settle(request: SettlementRequest, unused: Spend): void {
    const { requestId, inquire = false } = request;
    const charged = this.#running.get(requestId);
    this.#running.delete(requestId);
    this.outbox.renew(requestId, null);
    // What the object has reserved itself expires there.
    if (charged === undefined && this.outbox.isFull) return;
    this.outbox.add({
      ...request,
      kind: 'settled',
      refund: charged ? this.#refund(charged, unused, inquire) : null,
    });
  }

  /** The object refunds the rest, and what a request holds whose usage is not known yet. */
  #refund(
    { keyId, slice, spend }: Charged,
    unused: Spend,
    inquire: boolean,
  ): (Spend & { slice: number }) | null {
    const refund = eachOf((name) => (inquire ? 0 : Math.min(Math.max(0, unused[name]), spend[name])));
    return this.slices.refund(keyId, slice, { ...refund, slots: 1 }) ? { slice, ...refund } : null;
  }

  /** Returns the slices of the selected keys to the object. */
  returnSlices(isSelected: (keyId: string) => boolean): void {
    for (const slice of this.slices.drop(isSelected)) this.outbox.add({ kind: 'returned', slice });
  }

  /**
   * Returns whether the object counts a slice of this key, or of any key if null, that has not been returned.
   */
  mayHold(keyId: string | null, now: number): boolean {
    const held = keyId === null ? !this.slices.isEmpty : this.slices.of(keyId, now) !== null;
    return held || this.demand.isAsking(keyId, now);
  }

  /** Starts anew with a new id: the object has settled this isolate's requests as those of a lost one. */
  restart(isolate: string): void {
    this.#isolate = isolate;
    this.slices.drop(() => true);
    this.#running.clear();
    // Streams that still run are settled under their own ids.
    this.outbox.restart();
  }
}
