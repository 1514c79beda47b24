import { isEndUser } from './end-user.ts';
import type { LimiterCaller as Caller } from './limiter-client.ts';
import { MAX_PAUSE_MS, ObjectLink } from './object-link.ts';
import { NOTHING, type Spend } from './quota/budget.ts';
import { isSome, LocalBudgets } from './quota/local-budgets.ts';
import type {
  Claimant,
  Renewal,
  ReservationRequest,
  ReservationResult,
  Settlement,
  SettlementRequest,
} from './quota/protocol.ts';
import { NO_USAGE } from './usage/usage-record.ts';

/** Attempts of a request that the object refuses while slices of its tenant are on their way. */
const ATTEMPTS = 3;
const POLL_MS = 5;
/** Limiters that hold nothing are forgotten when there are more. */
const MAX_LIMITERS = 1_000;

/** Settles a reservation whose answer was lost. */
const UNHEARD: Settlement = {
  status: 'failed',
  usage: NO_USAGE,
  endUser: null,
  errorCode: 'server_is_overloaded',
  finishReasons: [],
  upstream: null,
  latencyMs: 0,
  firstTokenMs: null,
};

/** The answer to a request for a reservation, which has this id. */
export type Reserved = ReservationResult & { readonly requestId: string };

/** One isolate's side of a tenant's limiter: it decides from slices, and asks the object for the rest. */
export class IsolateLimiter {
  readonly #budgets: LocalBudgets;
  readonly #object: ObjectLink;

  constructor(tenantId: string, isolate: string) {
    this.#budgets = new LocalBudgets(isolate);
    this.#object = new ObjectLink(tenantId, this.#budgets);
  }

  /** It holds nothing, and has nothing to tell the object. */
  get isIdle(): boolean {
    return this.#object.isIdle;
  }

  /**
   * Reserves from a slice of the budgets, without a call. If that has too little, the object decides, after
   * this isolate has returned what it holds of the exceeded limit.
   * @throws what the call of the object throws; then the next call frees what it may have reserved
   */
  async reserve(claimant: Claimant, caller: Caller): Promise<Reserved> {
    const here = this.#reserveHere(claimant, caller);
    if (here !== null) return here;
    return this.#insist(
      claimant.keyId,
      caller,
      () => this.#reserveAtObject(claimant, caller),
      () => this.#reserveHere(claimant, caller),
    );
  }

  #reserveHere(claimant: Claimant, caller: Caller): Reserved | null {
    // Only the object counts end users.
    if (claimant.endUser) return null;
    const now = caller.now();
    const requestId = this.#budgets.admit(claimant, caller.requestId, now);
    if (requestId === null) return null;
    this.#object.wake(claimant.keyId, caller);
    const headers = this.#budgets.slices.headersOf(claimant.keyId, now) ?? {};
    return { admitted: true, headers, requestId };
  }

  async #reserveAtObject(claimant: Claimant, caller: Caller): Promise<Reserved> {
    const requestId = this.#budgets.newId(caller.requestId, claimant.price);
    try {
      return { ...(await this.#object.ask({ ...claimant, requestId }, caller)), requestId };
    } catch (thrown) {
      // Only the answer may have been lost.
      this.settle({ requestId, settlement: UNHEARD }, NOTHING, caller);
      throw thrown;
    }
  }

  /**
   * Reserves more for a running request from a slice: all that the claimant wants, or as much as there is.
   * Returns what it has reserved.
   */
  extend(claimant: Claimant, requestId: string, whole: boolean, caller: Caller): Spend {
    if (claimant.endUser) return NOTHING;
    const spend = this.#budgets.extend(claimant, requestId, whole, caller.now());
    if (isSome(spend)) this.#object.wake(claimant.keyId, caller);
    return spend;
  }

  /**
   * Raises a reservation at the object, which must know the request first: the call carries all decisions.
   */
  raise(request: ReservationRequest, caller: Caller): Promise<ReservationResult> {
    const askObject = () => this.#object.ask(request, caller, true);
    return this.#insist(request.keyId, caller, askObject, () => null);
  }

  /** Asks the object after this isolate has returned what it holds of the limit, a few times if necessary. */
  async #insist<T extends ReservationResult>(
    keyId: string,
    caller: Caller,
    askObject: () => Promise<T>,
    decideHere: () => T | null,
  ): Promise<T> {
    let returned: string | null = keyId;
    for (let attempt = 1; ; attempt += 1) {
      const kept = returned;
      this.#budgets.returnSlices((key) => kept === null || key === kept);
      const result = await askObject();
      if (result.admitted || typeof result.refusal === 'string') return result;
      const { subject, kind } = result.refusal;
      returned = subject === keyId ? subject : null;
      if (attempt === ATTEMPTS || kind === 'too_large' || isEndUser(subject)) return result;
      if (!(await this.#awaitSlices(returned, caller))) return result;
      const here = decideHere();
      if (here !== null) return here;
    }
  }

  /** Waits for slices that other requests have asked for. False if this isolate holds nothing. */
  async #awaitSlices(keyId: string | null, { now, backoff }: Caller): Promise<boolean> {
    if (!this.#budgets.mayHold(keyId, now())) return false;
    const { slices } = this.#budgets;
    for (let polls = 0; polls < MAX_PAUSE_MS / POLL_MS && slices.isAsking(keyId, now()); polls += 1) {
      await backoff.pause(POLL_MS);
    }
    return true;
  }

  /** Asks whether there is room for a request; a slice of its key is room. Reserves nothing. */
  async probe(claimant: Claimant, caller: Caller): Promise<ReservationResult> {
    const headers = this.#budgets.slices.headersOf(claimant.keyId, caller.now());
    if (headers !== null) return { admitted: true, headers };
    const requestId = this.#budgets.newId(caller.requestId, claimant.price);
    return this.#object.ask({ ...claimant, requestId, probe: true }, caller);
  }

  /**
   * Settles in the background, together with other requests.
   * @param unused what the request has reserved and not spent
   */
  settle(settlement: SettlementRequest, unused: Spend, caller: Caller): void {
    this.#budgets.settle(settlement, unused);
    this.#object.wake(null, caller);
  }

  /** Returns whether the object has said a moment ago, with another answer, that this key is not blocked. */
  isKnownOpen(keyId: string, caller: Caller): boolean {
    return this.#budgets.isKnownOpen(keyId, caller.now());
  }

  renew(requestId: string, renewal: Renewal, caller: Caller): void {
    this.#budgets.outbox.renew(requestId, renewal);
    this.#object.keep(caller);
  }
}

/** The limiters of an isolate, one per tenant. They hold no I/O objects. */
export class IsolateLimiters {
  readonly #randomHex: (bytes: number) => string;
  readonly #byTenant = new Map<string, IsolateLimiter>();

  constructor(randomHex: (bytes: number) => string) {
    this.#randomHex = randomHex;
  }

  of(tenantId: string): IsolateLimiter {
    const kept = this.#byTenant.get(tenantId);
    if (kept) return kept;
    if (this.#byTenant.size >= MAX_LIMITERS)
      for (const [name, { isIdle }] of this.#byTenant) if (isIdle) this.#byTenant.delete(name);
    const limiter = new IsolateLimiter(tenantId, this.#randomHex(8));
    this.#byTenant.set(tenantId, limiter);
    return limiter;
  }
}
