import type { Decision, LimiterCall, Renewal, SettledRequest } from './protocol.ts';

/** A call that has not returned by then counts as lost. */
export const CALL_MS = 2_000;
/** Ended requests that make a call due at once. */
const MANY_ENDED = 100;
/** An isolate with so many decisions makes no more, to forget none while the object is away. */
const MAX_DECISIONS = 10_000;

/**
 * What an isolate has to tell the object: its decisions, numbered in their order, and the latest renewals. A
 * decision stays until the object has confirmed its number, so it may arrive twice.
 */
export class Outbox {
  /** Oldest first. */
  #decisions: Decision[] = [];
  /** Number of the last confirmed decision. */
  #confirmed = 0;
  /** A call carries all decisions up to this number, unless it was lost by then. */
  #carried = { to: 0, until: 0 };
  /** Number of the last decision that any call has carried. */
  #sent = 0;
  readonly #renewals = new Map<string, Renewal>();
  /** Ended requests since the last call. */
  #ended = 0;

  get isEmpty(): boolean {
    return this.#decisions.length === 0 && this.#renewals.size === 0;
  }

  get isFull(): boolean {
    return this.#decisions.length >= MAX_DECISIONS;
  }

  get isUrgent(): boolean {
    return this.#ended >= MANY_ENDED;
  }

  /** Returns the number of the decision. */
  add(decision: Decision): number {
    this.#decisions.push(decision);
    return this.#confirmed + this.#decisions.length;
  }

  /** Adds the end of a request: to the admission with this number, unless a call has carried that already. */
  end({ requestId, ...end }: SettledRequest, admission: number | null): void {
    this.#ended += 1;
    const place = (admission ?? 0) - this.#confirmed - 1;
    const admitted = admission !== null && admission > this.#sent ? this.#decisions[place] : undefined;
    if (admitted?.kind === 'admitted') this.#decisions[place] = { ...admitted, end };
    else this.add({ kind: 'settled', requestId, ...end });
  }

  /** @param renewal null if the request has ended */
  renew(requestId: string, renewal: Renewal | null): void {
    if (renewal) this.#renewals.set(requestId, renewal);
    else this.#renewals.delete(requestId);
  }

  /** Returns whether no call under way carries all of it. */
  hasNews(now: number): boolean {
    return this.#renewals.size > 0 || this.#hasNewDecisions(now);
  }

  #hasNewDecisions(now: number): boolean {
    const carried = this.#carried.until <= now ? this.#confirmed : this.#carried.to;
    return this.#confirmed + this.#decisions.length > carried;
  }

  /**
   * Returns what the next call carries.
   * @param all all decisions, although another call may carry them
   */
  next(now: number, all: boolean): Pick<LimiterCall, 'first' | 'decisions' | 'renewals'> {
    const carries = all || this.#hasNewDecisions(now);
    if (carries) {
      this.#sent = this.#confirmed + this.#decisions.length;
      this.#carried = { to: this.#sent, until: now + CALL_MS };
    }
    const renewals = [...this.#renewals].map(([requestId, renewal]) => ({ requestId, ...renewal }));
    this.#renewals.clear();
    this.#ended = 0;
    return { first: this.#confirmed + 1, decisions: carries ? [...this.#decisions] : [], renewals };
  }

  /** The object has applied all decisions up to this number. */
  confirm(number: number): void {
    this.#decisions.splice(0, Math.max(0, number - this.#confirmed));
    this.#confirmed = Math.max(this.#confirmed, number);
  }

  /** The call has failed. The object may have received it. */
  lose({ decisions, renewals }: LimiterCall): void {
    if (decisions.length > 0) this.#carried = { to: 0, until: 0 };
    for (const { requestId, ...renewal } of renewals)
      if (!this.#renewals.has(requestId)) this.#renewals.set(requestId, renewal);
  }

  /** Keeps only the ends of requests, without refunds: the object has ended all slices of the isolate. */
  restart(): void {
    this.#decisions = this.#decisions.flatMap((decision): Decision[] => {
      if (decision.kind === 'settled') return [{ ...decision, refund: null }];
      if (decision.kind !== 'admitted' || !decision.end) return [];
      return [{ kind: 'settled', requestId: decision.requestId, ...decision.end, refund: null }];
    });
    this.#confirmed = 0;
    this.#sent = 0;
    this.#carried = { to: 0, until: 0 };
  }
}
