import { expect } from 'vitest';
import { type Limits, type Principal, type TenantLimits, UNLIMITED } from '../../../../shared/tenant.ts';
import type { RequestContext } from '../../../../worker/http/request-context.ts';
import { begin, type Hold } from '../../../../worker/limits/hold.ts';
import { IsolateLimiters } from '../../../../worker/limits/isolate-limiter.ts';
import { IsolateCalls } from '../../../../worker/limits/objects/isolate-calls.ts';
import { IsolateSlices } from '../../../../worker/limits/objects/isolate-slices.ts';
import { LimiterStorage } from '../../../../worker/limits/objects/limiter-storage.ts';
import { LostIsolates } from '../../../../worker/limits/objects/lost-isolates.ts';
import { OpenRequests, subjectsOf } from '../../../../worker/limits/objects/open-requests.ts';
import { recordAfter } from '../../../../worker/limits/objects/usage-inquiry.ts';
import { eachOf, type Spend } from '../../../../worker/limits/quota/budget.ts';
import type { LimiterCall, LimiterReply } from '../../../../worker/limits/quota/protocol.ts';
import { reservedBy, useOf } from '../../../../worker/limits/quota/state.ts';
import type { Price } from '../../../../worker/limits/usage/price.ts';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { spendOf, type UsageRecord } from '../../../../worker/limits/usage/usage-record.ts';
import { Timings } from '../../../../worker/timers/timings.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

/**
 * One tenant's object and many isolates in virtual time, over a network that delivers messages late, twice or
 * never. The code of both sides is the Worker's own. The truth about all requests is kept apart, by the
 * definition of the limits.
 */

const TTL_MS = 30_000;

/** Virtual time. Events of the same moment run in the order in which they were scheduled. */
class VirtualClock {
  now: number;
  /** The next one last. */
  #events: { readonly at: number; readonly run: () => void }[] = [];

  constructor(now: number) {
    this.now = now;
  }

  after(ms: number, run: () => void): void {
    const at = this.now + Math.max(0, Math.round(ms));
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#events[middle]!.at > at) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, { at, run });
  }

  /** Lets time pass in which nothing happens: all events are later. */
  skip(ms: number): void {
    this.now += ms;
    this.#events = this.#events.map((event) => ({ ...event, at: event.at + ms }));
  }

  /** Runs all events of the next `ms` milliseconds. */
  async run(ms: number): Promise<void> {
    const end = this.now + ms;
    for (let next = this.#events.at(-1); next && next.at <= end; next = this.#events.at(-1)) {
      this.#events.pop();
      this.now = next.at;
      next.run();
      await new Promise(setImmediate);
    }
    this.now = end;
  }
}

/** What a request has really done. */
interface Truth {
  /** The tenant, the key, and the end user if there is one. */
  readonly subjects: readonly string[];
  readonly at: number;
  readonly price: Price | null;
  /** What it has reserved, oldest first. */
  readonly charges: ({ readonly at: number } & Spend)[];
  /** Tokens; null while it runs. */
  used: number | null;
}

/** Returns what a request spends at the selected times. What it has reserved is used in order. */
function countedSpend(
  { charges, used, price }: Truth,
  name: keyof Spend,
  counts: (at: number) => boolean,
): number {
  let left = used === null ? Infinity : spendOf(price, usageOf(used))[name];
  return charges.reduce((sum, { at, [name]: amount }) => {
    const part = Math.min(amount, left);
    left -= part;
    return sum + (counts(at) ? part : 0);
  }, 0);
}

interface Isolate {
  readonly name: number;
  readonly limiters: IsolateLimiters;
  /** Milliseconds of one way to the object. */
  readonly delay: number;
  /** Its clock is this far ahead of the object's. */
  readonly skew: number;
  alive: boolean;
  /** Ends the running requests, if it vanishes. */
  readonly running: Map<string, () => void>;
  /** Names of the requests that wait for their admission. */
  readonly waiting: Set<string>;
}

export interface WorldOptions {
  readonly random: () => number;
  readonly start: number;
  readonly isolates: number;
  /** By subject. */
  readonly limits: Readonly<Record<string, Limits & Partial<TenantLimits>>>;
  /** Of each end user. */
  readonly userLimits?: Limits;
  /** Of all requests. */
  readonly price?: Price;
  /** Share of messages that are lost, and that arrive twice. */
  readonly faults: number;
  /** Milliseconds of one way to the object; by default 5 to 250, different for each isolate. */
  readonly delay?: number;
  /** The upstreams keep no usage accounts. */
  readonly withoutAccounts?: boolean;
  /** Completions wait for the minute. */
  readonly waitForTokens?: boolean;
  /** Does not check the limits at every admission, which takes most of the time of many requests. */
  readonly unchecked?: boolean;
}

export interface Wanted {
  readonly isolate: number;
  readonly key: string;
  readonly user?: string | null;
  /** Reserved before it runs. */
  readonly tokens: number;
  /** More than `tokens`: a stream, whose reservation grows. */
  readonly most?: number;
  readonly used: number;
  readonly runMs: number;
  /** The client of a stream leaves after this time. */
  readonly leavesMs?: number | undefined;
}

/** Steps of a stream. */
const STEPS = 40;

const DAY_MS = 86_400_000;
const days = new Map<number, string>();

/** Returns the UTC day. A run asks for few days very often. */
function day(at: number): string {
  const number = Math.floor(at / DAY_MS);
  const known = days.get(number) ?? new Date(at).toISOString().slice(0, 10);
  days.set(number, known);
  return known;
}

export class World {
  readonly clock: VirtualClock;
  readonly truth = new Map<string, Truth>();
  readonly ledger: UsageRecord[] = [];
  readonly counts = { calls: 0, waited: 0, asked: 0, refused: 0, failed: 0, cut: 0 };
  readonly #isolates: Isolate[];
  readonly #options: WorldOptions;
  /** What an origin knows of the requests that have reached it. */
  readonly #accounts = new Map<string, { readonly startedAt: number; used: number; ended: boolean }>();
  /** Rows that the object has written. */
  rows = 0;
  readonly #sql = sqlStorage((rows) => {
    this.rows += rows;
  });
  #storage!: LimiterStorage;
  #tidied = '';
  #requests!: OpenRequests;
  #slices!: IsolateSlices;
  #calls!: IsolateCalls;
  #isAway = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.clock = new VirtualClock(options.start);
    const draw = (from: number, to: number) => from + (to - from) * options.random();
    let ids = 0;
    this.#isolates = Array.from({ length: options.isolates }, (_, name) => ({
      name,
      limiters: new IsolateLimiters(() => `i${ids++}`),
      delay: options.delay ?? draw(5, 250),
      skew: Math.round(draw(-3_600_000, 3_600_000)),
      alive: true,
      running: new Map(),
      waiting: new Set<string>(),
    }));
    this.restartObject();
    this.#ring();
  }

  /** Restarts the object. Only what it has written survives. */
  restartObject(): void {
    const storage = new LimiterStorage(this.#sql, new TenantLedger(this.#sql), () => this.clock.now);
    const requests = new OpenRequests(storage, { of: () => null });
    this.#storage = storage;
    this.#requests = requests;
    this.#slices = new IsolateSlices(requests, storage, { know: () => {} });
    this.#calls = new IsolateCalls(this.#slices, requests);
  }

  #write(): void {
    this.ledger.push(...this.#storage.commit());
  }

  /** The object neither answers nor rings for a while, and then restarts. */
  async stopObject(ms: number): Promise<void> {
    this.#isAway = true;
    await this.clock.run(ms);
    this.#isAway = false;
    this.restartObject();
  }

  /** The object's alarm. */
  #ring(): void {
    const { now } = this.clock;
    this.clock.after(250, () => this.#ring());
    if (this.#isAway) return;
    this.#slices.endDue(now);
    this.#requests.releaseDue(now);
    const lost = new LostIsolates(this.#slices, this.#requests);
    for (const isolate of this.#slices.lost(now)) lost.settle(isolate, this.#under(isolate), now);
    for (const open of this.#requests.abandoned(now)) {
      const known = this.#accounts.get(open.reservation.id);
      const usage = known && usageOf(known.used);
      const account = usage ? { usage, finishReasons: [], ended: known.ended, firstTokenMs: null } : null;
      const { record, askAt } = recordAfter(open, { account, complete: true }, now);
      if (askAt === null) this.#requests.close(open, record);
      else this.#requests.postpone(open, record, askAt);
    }
    this.#write();
    if (day(now) === this.#tidied) return;
    this.#tidied = day(now);
    this.#storage.checkpoint();
    this.#storage.counters.dropUnused(now);
  }

  #under(isolate: string) {
    const { now } = this.clock;
    const own = [...this.#accounts].filter(([id]) => id.startsWith(`${isolate}.`));
    return own.map(([account, { startedAt, used }]) => ({
      account,
      model: 'tiny',
      usage: usageOf(used),
      ageMs: now - startedAt,
    }));
  }

  #exchange(isolate: Isolate, call: LimiterCall): Promise<LimiterReply> {
    const { random, faults } = this.#options;
    this.counts.calls += 1;
    if (call.reservation) this.counts.waited += 1;
    const delay = () => isolate.delay * (0.8 + 0.4 * random());
    return new Promise((resolve, reject) => {
      const fail = () => isolate.alive && reject(new Error('lost'));
      // The connection breaks soon or late, whether or not the message arrives.
      if (random() < faults) this.clock.after(random() < 0.5 ? delay() : 4_000, fail);
      const calls = this.#calls;
      const deliver = () => {
        // The connections to an object that has restarted are broken.
        if (this.#isAway || calls !== this.#calls) return fail();
        let answer: LimiterReply;
        try {
          answer = this.#calls.exchange(structuredClone(call), this.clock.now);
        } catch {
          return;
        }
        this.#write();
        const { reservation } = call;
        if (answer.reservation?.admitted && reservation?.raise)
          this.#reserved(reservation.requestId, answer.reservation as Spend);
        if (
          reservation &&
          !reservation.raise &&
          answer.reservation?.admitted &&
          !this.truth.has(reservation.requestId)
        ) {
          const { requestId, tokens, money } = reservation;
          const subjects = subjectsOf(reservation).map(({ id }) => id);
          const isAwaited = isolate.alive && isolate.waiting.has(requestId.split('.').at(-1)!);
          this.#admitted(requestId, subjects, { tokens, money }, isAwaited ? null : 0);
        }
        if (random() < faults) this.clock.after(4_000, fail);
        else this.clock.after(delay(), () => isolate.alive && resolve(structuredClone(answer)));
      };
      if (random() < faults) return this.clock.after(4_000, fail);
      this.clock.after(delay(), deliver);
      if (random() < faults) this.clock.after(10 * delay(), deliver);
    });
  }

  /** An isolate gets a request. */
  async ask(wanted: Wanted): Promise<void> {
    const isolate = this.#isolates[wanted.isolate]!;
    if (!isolate.alive) return;
    const { key, tokens, user = null } = wanted;
    this.counts.asked += 1;
    const name = `r${this.counts.asked}`;
    const context = this.#contextOf(isolate, name, user);
    const principal = {
      tenant: {
        id: 'tenant',
        waitForTokens: this.#options.waitForTokens ?? false,
        limits: { ...(this.#options.limits.tenant ?? UNLIMITED), ...this.#userLimits() },
      },
      key: { id: key, limits: this.#options.limits[key] ?? UNLIMITED },
    } as Principal;
    isolate.waiting.add(name);
    try {
      const most = wanted.most ?? tokens;
      const { price = null } = this.#options;
      const cost = { tokens, most, prompt: 0, model: 'tiny', price };
      const hold = await begin(principal, cost, context);
      if (!isolate.alive) return;
      if (!this.truth.has(hold.id)) this.#admitted(hold.id, subjectIds(key, user), hold.reserved, null);
      if (wanted.most === undefined) this.#start(isolate, hold, wanted);
      else void this.#stream(isolate, hold, wanted);
    } catch (thrown) {
      this.#neverRuns(name);
      const { status } = thrown as { readonly status?: number };
      if (status === undefined) throw thrown;
      if (status === 503) this.counts.failed += 1;
      else this.counts.refused += 1;
    } finally {
      isolate.waiting.delete(name);
    }
  }

  #userLimits(): Partial<Limits> {
    const limits = this.#options.userLimits ?? UNLIMITED;
    return {
      userRequestsPerMinute: limits.requestsPerMinute,
      userTokensPerMinute: limits.tokensPerMinute,
      userTokensPerDay: limits.tokensPerDay,
      userTokensPerMonth: limits.tokensPerMonth,
      userMicrosPerDay: limits.microsPerDay,
      userMicrosPerMonth: limits.microsPerMonth,
      userConcurrentRequests: limits.concurrentRequests,
    };
  }

  /** The object may have admitted a request that has got no answer. */
  #neverRuns(name: string): void {
    for (const [id, truth] of this.truth) if (id.endsWith(`.${name}`)) truth.used ??= 0;
  }

  #contextOf(isolate: Isolate, requestId: string, endUser: string | null): RequestContext {
    const now = () => this.clock.now + isolate.skew;
    const after = (ms: number, run: () => void): (() => void) => {
      let cancelled = false;
      this.clock.after(ms, () => {
        if (isolate.alive && !cancelled) run();
      });
      return () => {
        cancelled = true;
      };
    };
    const limiter = { exchange: (call: LimiterCall) => this.#exchange(isolate, call) };
    return {
      env: { LIMITER: { idFromName: (name: string) => name, get: () => limiter } },
      requestId,
      now,
      reply: { limits: {} },
      randomHex: () => `${isolate.name}-${now()}`,
      settings: { RESERVATION_TTL_MS: TTL_MS, REQUEST_TIMEOUT_MS: 20_000 },
      timings: new Timings(now),
      timers: { after },
      backoff: { random: () => 0.5, pause: (ms: number) => new Promise<void>((wake) => after(ms, wake)) },
      waitUntil: () => {},
      limiters: isolate.limiters,
      caller: { principal: null, endUser },
      batchKey: null,
      currentPrincipal: async (caller: Principal) => caller,
    } as unknown as RequestContext;
  }

  #start(isolate: Isolate, hold: Hold, { used, runMs }: Wanted): void {
    const { id } = hold;
    const account = { startedAt: this.clock.now, used: 0, ended: false };
    if (!this.#options.withoutAccounts) this.#accounts.set(id, account);
    const endWith = (tokens: number) => {
      isolate.running.delete(id);
      account.used = tokens;
      account.ended = true;
      this.#ended(id, tokens);
    };
    isolate.running.set(id, () =>
      endWith(Math.floor((used * (this.clock.now - account.startedAt)) / Math.max(1, runMs))),
    );
    this.clock.after(runMs, () => {
      if (!isolate.alive) return;
      endWith(used);
      const rest = { errorCode: null, finishReasons: [], upstream: null, firstTokenAt: null };
      hold.end({ status: 'completed', usage: usageOf(used), ...rest });
    });
  }

  /** A stream relays a part of its completion per step. If it may use no more, it ends. */
  async #stream(isolate: Isolate, hold: Hold, wanted: Wanted): Promise<void> {
    const { id } = hold;
    const account = { startedAt: this.clock.now, used: 0, ended: false };
    if (!this.#options.withoutAccounts) this.#accounts.set(id, account);
    const end = () => {
      isolate.running.delete(id);
      account.ended = true;
      this.#ended(id, account.used);
    };
    isolate.running.set(id, end);
    const result = { status: 'completed', errorCode: null as string | null } as const;
    const settle = (errorCode: string | null) => {
      end();
      const rest = { finishReasons: [], upstream: null, firstTokenAt: null };
      hold.end({ ...result, errorCode, usage: usageOf(account.used), ...rest });
    };
    let left = false;
    const leave = () => {
      if (!isolate.alive || account.ended) return;
      left = true;
      settle('left');
    };
    if (wanted.leavesMs !== undefined) this.clock.after(wanted.leavesMs, leave);
    for (let step = 1; step <= STEPS; step += 1) {
      await new Promise<void>((resume) => this.clock.after(wanted.runMs / STEPS, resume));
      if (!isolate.alive || left) return;
      const next = Math.floor((wanted.used * step) / STEPS);
      const spending = hold.spend(next);
      const limit = spending && (await spending.catch(() => 'failed'));
      if (!isolate.alive) return;
      // The Worker learns of the end from its next read.
      if (left) return void hold.spend(next);
      this.#reserved(id, hold.reserved);
      if (limit !== null) {
        this.counts.cut += 1;
        // Relays what still fits.
        account.used = Math.max(account.used, Math.min(next, hold.usable));
        return settle(limit);
      }
      account.used = next;
    }
    settle(null);
  }

  /** A request has reserved so much in all. */
  #reserved(id: string, total: Spend): void {
    const truth = this.truth.get(id)!;
    const before = reservedBy(truth);
    const more = eachOf((name) => Math.max(0, total[name] - before[name]));
    if ((more.tokens === 0 && more.money === 0) || truth.used !== null) return;
    truth.charges.push({ at: this.clock.now, ...more });
    for (const subject of truth.subjects) this.#check(subject);
  }

  /** An isolate is gone, with all that it holds. The origins notice at once. */
  vanish(index: number): void {
    const isolate = this.#isolates[index]!;
    isolate.alive = false;
    for (const end of [...isolate.running.values()]) end();
    for (const name of isolate.waiting) this.#neverRuns(name);
  }

  #admitted(id: string, subjects: readonly string[], spend: Spend, used: number | null): void {
    const at = this.clock.now;
    const { price = null } = this.#options;
    this.truth.set(id, { subjects, at, price, charges: [{ at, ...spend }], used });
    for (const subject of subjects) this.#check(subject);
  }

  #ended(id: string, tokens: number): void {
    const truth = this.truth.get(id)!;
    truth.used = tokens;
  }

  /** Checks the limits by their definition, over all admitted requests of all isolates. */
  #check(subject: string): void {
    const limits: (Limits & Partial<TenantLimits>) | undefined = subject.startsWith('user:')
      ? this.#options.userLimits
      : this.#options.limits[subject];
    if (!limits || this.#options.unchecked) return;
    const { now } = this.clock;
    const second = (at: number) => Math.floor(at / 1000);
    const sums = {
      requests: 0,
      tokens: 0,
      day: 0,
      month: 0,
      running: 0,
      moneyDay: 0,
      moneyMonth: 0,
      ever: 0,
    };
    const isInMinute = (at: number) => second(at) > second(now) - 60;
    const today = day(now);
    const month = today.slice(0, 7);
    for (const truth of this.truth.values()) {
      if (!truth.subjects.includes(subject)) continue;
      if (isInMinute(truth.at)) sums.requests += 1;
      const isToday = (at: number) => day(at) === today;
      const isThisMonth = (at: number) => day(at).startsWith(month);
      sums.tokens += countedSpend(truth, 'tokens', isInMinute);
      sums.day += countedSpend(truth, 'tokens', isToday);
      sums.month += countedSpend(truth, 'tokens', isThisMonth);
      sums.moneyDay += countedSpend(truth, 'money', isToday);
      sums.moneyMonth += countedSpend(truth, 'money', isThisMonth);
      sums.ever += countedSpend(truth, 'money', () => true);
      if (truth.used === null) sums.running += 1;
    }
    const bounds = [
      ['requests', limits.requestsPerMinute],
      ['tokens', limits.tokensPerMinute],
      ['running', limits.concurrentRequests],
      ['day', limits.tokensPerDay],
      ['month', limits.tokensPerMonth],
      ['moneyDay', limits.microsPerDay],
      ['moneyMonth', limits.microsPerMonth],
      ['ever', limits.creditMicros ?? null],
    ] as const;
    for (const [name, limit] of bounds) {
      if (limit !== null && sums[name] > limit) {
        throw new Error(`${subject} has ${sums[name]} of ${limit} ${name} at ${now}.`);
      }
    }
  }

  /** Lets time pass in which nothing happens but the object's alarm. */
  async pass(ms: number): Promise<void> {
    this.clock.skip(ms);
    await this.clock.run(1_000);
  }

  /** Ids of the subjects that the object stores. */
  get stored(): string[] {
    this.#storage.checkpoint();
    return this.#sql
      .exec<{ id: string }>('SELECT id FROM subjects')
      .toArray()
      .map(({ id }) => id);
  }

  /** What the limiter counts: tokens and money of today, money in all, and running requests. */
  counted(subject: string): Readonly<Record<'tokens' | 'money' | 'ever' | 'running', number>> {
    const use = useOf(this.#storage.counters, subject, this.clock.now);
    const { day: tokens, moneyDay: money, balance: ever, concurrency: running } = use;
    // Nothing runs, so all that was charged was spent.
    expect([use.spentDay, use.spentEver]).toEqual([money, ever]);
    return { tokens, money, ever, running };
  }

  /** What the requests of a subject have really spent, by default today. */
  spent(subject: string, name: keyof Spend, since = day(this.clock.now)): number {
    const own = [...this.truth.values()].filter(({ subjects }) => subjects.includes(subject));
    return own.reduce((sum, truth) => sum + countedSpend(truth, name, (at) => day(at) >= since), 0);
  }

  /** What all records of the ledger bill. */
  billed(): Map<string, Spend> {
    return new Map(
      this.ledger.map(({ requestId, usage, cost }) => [
        requestId,
        { tokens: spendOf(null, usage).tokens, money: cost },
      ]),
    );
  }

  /** Waits until every isolate has reported or is lost. */
  async settle(): Promise<void> {
    await this.clock.run(150_000);
  }
}

const subjectIds = (key: string, user: string | null): string[] => [
  ...['tenant', key],
  ...(user === null ? [] : [`user:${user}`]),
];

const usageOf = (completionTokens: number) => ({ promptTokens: 0, cachedTokens: 0, completionTokens });
