import type {
  Claimant,
  LimiterAnswer,
  Renewal,
  ReservationRequest,
  ReservationResult,
  SettlementRequest,
  Spend,
  TenantLimiterRpc,
} from '../env/limiter-protocol.ts';
import type { AdmittedHere, LimiterCaller as Caller, TenantLimiterClient } from '../http/request-context.ts';
import type { After } from '../timers/request-timers.ts';
import { retry } from '../timers/retry.ts';
import { requireInTime } from '../timers/time-limit.ts';
import { isEndUser } from './end-user.ts';
import { NOTHING } from './quota/budget.ts';
import { Purse } from './quota/purse.ts';

/** Decisions wait this long for others before a call. */
const FLUSH_MS = 100;
/** Busy isolates wait longer: each call then carries more. */
const BUSY_FLUSH_MS = 250;
const BUSY_DECISIONS = 10;
/** Longest pause while home does not answer. */
const MAX_PAUSE_MS = 1_600;
/**
 * After this many pauses, the next request takes the keeper's work over: a request's work may end 30 s after
 * its response.
 */
const SHIFT_TICKS = 50;
const MAX_TICKS = 150;
/** A keeper without a sign of life for this long has ended with its request. */
const KEEPER_DEAD_MS = 5_000;
/** A call without an answer has failed after this time: a request must not wait for a limiter that hangs. */
const CALL_WITHIN_MS = 10_000;
/** Attempts of a request that home refuses while slices of its tenant are on their way. */
const ATTEMPTS = 3;
const POLL_MS = 5;
/** Clients that hold nothing are forgotten when there are more. */
const MAX_CLIENTS = 1_000;

/** Calls a tenant's home limiter. @throws what the call throws, or an Error if it hangs */
export async function callHome<T>(
  { env, timers }: { readonly env: Caller['env']; readonly timers: { readonly after: After } },
  tenantId: string,
  call: (home: DurableObjectStub<TenantLimiterRpc>) => Promise<T>,
): Promise<T> {
  // Each call gets its own stub, because a restarted limiter breaks its stubs.
  const home = env.LIMITER.get(env.LIMITER.idFromName(tenantId));
  return requireInTime(call(home), { after: timers.after, ms: CALL_WITHIN_MS });
}

/**
 * Tells a tenant's limiter whether one of its keys is blocked, or the tenant if `keyId` is null. It repeats
 * this until the limiter has what the database says: of two concurrent changes, the one stored first may
 * reach the limiter last.
 * @param read reads it from the database; null = there is no such record
 */
export async function syncBlock(
  { tenantId, keyId }: { readonly tenantId: string; readonly keyId: string | null },
  read: () => Promise<boolean | null>,
  context: Parameters<typeof callHome>[0] & Pick<Caller, 'backoff'>,
): Promise<void> {
  for (let told: boolean | null = null; ; ) {
    const blocked = await read();
    if (blocked === null || blocked === told) return;
    await retry(() => callHome(context, tenantId, (home) => home.block(keyId, blocked)), context.backoff);
    told = blocked;
  }
}

/**
 * One isolate's side of a tenant's limiter. Every call is made by a request, and no request waits for the
 * call of another: I/O belongs to a single request. One request at a time is the keeper: its background work
 * delivers the journal.
 */
export class LimiterClient implements TenantLimiterClient {
  readonly #tenantId: string;
  readonly #purse: Purse;
  #keeper: { beatAt: number; ticks: number } | null = null;
  /** Decisions in the latest call. */
  #carried = 0;
  /** No calls at once while home does not answer. */
  #failing = false;

  constructor(tenantId: string, isolate: string) {
    this.#tenantId = tenantId;
    this.#purse = new Purse(isolate);
  }

  get isQuiet(): boolean {
    return this.#keeper === null && this.#purse.isQuiet;
  }

  admit(claimant: Claimant, context: Caller): AdmittedHere | null {
    if (claimant.endUser) return null;
    const now = context.now();
    const requestId = this.#purse.admit(claimant, context.requestId, now);
    if (requestId === null) return null;
    this.#wake(claimant.keyId, context);
    return { requestId, headers: this.#purse.rateLimitHeaders(claimant.keyId, now) ?? {} };
  }

  async reserve(
    claimant: Claimant,
    context: Caller,
    onAttempt: (requestId: string) => void,
  ): Promise<ReservationResult> {
    const askHome = () => {
      const requestId = this.#purse.nameOf(context.requestId, claimant.price);
      onAttempt(requestId);
      return this.#ask({ ...claimant, requestId }, context);
    };
    return this.#insist(claimant.keyId, context, askHome, () => {
      const here = this.admit(claimant, context);
      if (here === null) return null;
      onAttempt(here.requestId);
      return { admitted: true, headers: here.headers };
    });
  }

  extend(claimant: Claimant, requestId: string, whole: boolean, context: Caller): Spend {
    if (claimant.endUser) return NOTHING;
    const spend = this.#purse.extend(claimant, requestId, whole, context.now());
    if (spend.tokens > 0 || spend.money > 0) this.#wake(claimant.keyId, context);
    return spend;
  }

  /** Home must know the request first, so the call carries all decisions. */
  raise(request: ReservationRequest, context: Caller): Promise<ReservationResult> {
    const askHome = () => this.#ask(request, context, true);
    return this.#insist(request.keyId, context, askHome, () => null);
  }

  /** Asks home after this isolate has returned what it holds of the limit, a few times if necessary. */
  async #insist(
    keyId: string,
    context: Caller,
    askHome: () => Promise<ReservationResult>,
    decideHere: () => ReservationResult | null,
  ): Promise<ReservationResult> {
    let returned: string | null = keyId;
    for (let attempt = 1; ; attempt += 1) {
      this.#purse.giveBack(returned);
      const result = await askHome();
      if (result.admitted || typeof result.refusal === 'string') return result;
      const { subject, kind } = result.refusal;
      returned = subject === keyId ? subject : null;
      if (attempt === ATTEMPTS || kind === 'too_large' || isEndUser(subject)) return result;
      if (!(await this.#awaitSlices(returned, context))) return result;
      const here = decideHere();
      if (here !== null) return here;
    }
  }

  async probe(claimant: Claimant, context: Caller): Promise<ReservationResult> {
    const headers = this.#purse.rateLimitHeaders(claimant.keyId, context.now());
    if (headers !== null) return { admitted: true, headers };
    const requestId = this.#purse.nameOf(context.requestId, claimant.price);
    return this.#ask({ ...claimant, requestId, probe: true }, context);
  }

  settle(settlement: SettlementRequest, unused: Spend, context: Caller): void {
    this.#purse.settle(settlement, unused);
    this.#wake(null, context);
  }

  renew(requestId: string, renewal: Renewal, context: Caller): void {
    this.#purse.renew(requestId, renewal);
    this.#keep(context);
  }

  async #ask(request: ReservationRequest, context: Caller, all = false): Promise<ReservationResult> {
    const { reservation } = await this.#exchange(request, context, all);
    return reservation!;
  }

  async #exchange(request: ReservationRequest | null, context: Caller, all = false): Promise<LimiterAnswer> {
    const sentAt = context.now();
    const call = this.#purse.compose(request, sentAt, all);
    this.#carried = call.decisions.length;
    try {
      const answer = await callHome(context, this.#tenantId, (home) => home.exchange(call));
      this.#purse.take(call, answer, sentAt, context.randomHex(8));
      this.#failing = false;
      return answer;
    } catch (thrown) {
      this.#purse.lose(call);
      this.#failing = true;
      throw thrown;
    } finally {
      this.#keep(context);
    }
  }

  /** Waits for slices that other requests have asked for. False if this isolate holds nothing. */
  async #awaitSlices(keyId: string | null, { now, backoff }: Caller): Promise<boolean> {
    if (!this.#purse.mayHold(keyId, now())) return false;
    for (let polls = 0; polls < MAX_PAUSE_MS / POLL_MS && this.#purse.isAsking(keyId, now()); polls += 1) {
      await backoff.pause(POLL_MS);
    }
    return true;
  }

  /** Calls home at once if that is due, otherwise soon. */
  #wake(keyId: string | null, context: Caller): void {
    if (!this.#failing && this.#purse.isUrgent(keyId, context.now()))
      context.waitUntil(this.#exchange(null, context).catch(() => {}));
    else this.#keep(context);
  }

  /** Makes sure that a request keeps this client: one whose work has not become too old. */
  #keep(context: Caller): void {
    const { beatAt = -Infinity, ticks = 0 } = this.#keeper ?? {};
    if (ticks < SHIFT_TICKS && context.now() - beatAt < KEEPER_DEAD_MS) return;
    if (this.#purse.isQuiet) return;
    const keeper = { beatAt: context.now(), ticks: 0 };
    this.#keeper = keeper;
    context.waitUntil(this.#run(keeper, context));
  }

  /** Calls home with all news until this isolate holds nothing of the tenant's budgets. */
  async #run(keeper: { beatAt: number; ticks: number }, context: Caller): Promise<void> {
    let pause = FLUSH_MS;
    while (keeper.ticks < MAX_TICKS && !this.#purse.isQuiet) {
      await context.backoff.pause(pause);
      if (this.#keeper !== keeper) return;
      keeper.beatAt = context.now();
      keeper.ticks += pause / FLUSH_MS;
      if (!this.#purse.isDue(keeper.beatAt)) continue;
      pause = await this.#exchange(null, context).then(
        () => (this.#carried < BUSY_DECISIONS ? FLUSH_MS : BUSY_FLUSH_MS),
        () => Math.min(MAX_PAUSE_MS, 2 * pause),
      );
    }
    if (this.#keeper === keeper) this.#keeper = null;
  }
}

/** Returns the clients of an isolate, one per tenant. They hold no I/O objects. */
export function limiterClients(randomHex: (bytes: number) => string): (tenantId: string) => LimiterClient {
  const clients = new Map<string, LimiterClient>();
  return (tenantId) => {
    const kept = clients.get(tenantId);
    if (kept) return kept;
    if (clients.size >= MAX_CLIENTS)
      for (const [name, { isQuiet }] of clients) if (isQuiet) clients.delete(name);
    const client = new LimiterClient(tenantId, randomHex(8));
    clients.set(tenantId, client);
    return client;
  };
}
