import { VirtualTimes } from '@continuo/shared/virtual-times.ts';

/** What a tenant can compute now. */
export interface TenantWork {
  /** Share relative to other tenants; greater than zero. */
  readonly weight: number;
  /** Takes the time that interactive work leaves, and a small share at least. */
  readonly flex: boolean;
  /** `short` = one of its prompts is so short that it goes first. */
  readonly prompts: 'none' | 'long' | 'short';
  /** Its sequences that decode. */
  readonly rows: number;
}

/** By tenant and class. */
export type Work = ReadonlyMap<string, TenantWork>;

/** A tenant's part of a run. */
export interface RunPart {
  readonly rows: number;
  /** Its rows, or more if they have long contexts: its part of the run relative to others. */
  readonly size: number;
  /** Milliseconds that were spent on its rows only. */
  readonly ownMs: number;
}

/** `other`: work for one tenant outside of the model, such as copies of its suspended sequences. */
type RunKind = 'prefill' | 'decode' | 'other';

/** What the engine has measured of a tenant. */
interface Account {
  weight: number;
  /** Milliseconds by which its prompts are ahead of its streams, while it has both. */
  promptLead: number;
  /** The longest part of a run that it had recently. */
  longestMs: number;
  /** Milliseconds of its runs that may be lost because short prompts of others stop them. */
  stopMs: number;
  /** By number of its rows: learned milliseconds of a decode run with only these, without `ownMs`. */
  readonly costs: Map<number, number>;
}

/** For short prompts, a tenant may take this time, or one run, in advance; no tenant is late before. */
const ADVANCE_MS = 10;
/** So much of the time of a tenant's runs may be lost in runs that are stopped. */
const MAX_STOPPED = 0.2;
/** A run of which more is done is not stopped, because a prompt waits less for its end than is lost. */
const MAX_DONE = 0.5;
/** A tenant that lags behind by more than so many of its runs comes before all short prompts. */
const LATE_RUNS = 2;
const FLEX_WEIGHT = 1 / 32;
/** After a jump of the clock, no tenant waits much longer than after the longest real run. */
const MAX_GROWTH = 4;
const LEAST_BOUND_MS = 100;
/** The longest run is forgotten after some hundred runs. */
const FORGET_LONGEST = 0.99;
/** A tenant whose runs have become short is soon no further ahead than by a few of them. */
const FORGET_OWN = 0.95;
const FORGET_COST = 0.995;
const LEARN_COST = 1 / 8;
/** An estimate that is too high must not cost a tenant its share. */
const CAUTION = 0.9;

/**
 * Shares the engine's time between tenants, by measured milliseconds. Each tenant with work gets as much as
 * if it had the engine alone for its weighted share of the time. Pure: the caller measures the runs and
 * reports them.
 *
 * Virtual time is in milliseconds ÷ weight. Each run moves `now` on by its milliseconds ÷ all weights: what
 * everybody should have had. It charges each tenant in it what the run was worth to it: the time that its
 * rows would have taken alone. Tenants that lag behind `now` are computed first. If none does, all are
 * computed together, which gives the most throughput. What idle tenants have received too early stays charged
 * until their share of the time has made up for it.
 */
export class TimeShares {
  readonly #promptShare: number;
  readonly #times = new VirtualTimes();
  readonly #accounts = new Map<string, Account>();
  #work: Work = new Map();
  #longestMs = 0;
  /** Whether the next run is a chunk of a short prompt that goes first. */
  #isAdvance = false;
  /** Learned from decode runs of several tenants: the milliseconds of a row. */
  #rowMs: number | undefined;

  /** @param promptShare the part of a tenant's time that its prompts get while it also has streams */
  constructor(promptShare = 0.5) {
    this.#promptShare = promptShare;
  }

  /** Returns the tenant that computes a chunk next; null if no prompt is due. */
  prompt(work: Work): string | null {
    this.#update(work);
    const due = this.#pool().filter(this.#promptsAreDue);
    const late = this.#times.first(due.filter(this.#isLate));
    this.#isAdvance = false;
    if (late !== null) return late;
    const short = [...work.keys()].filter((key) => {
      const { flex, prompts } = work.get(key)!;
      return !flex && prompts === 'short' && this.#lagMs(key) >= -this.#advanceMs(key);
    });
    const first = this.#times.first(short);
    this.#isAdvance = first !== null;
    return first ?? this.#times.first(due);
  }

  /**
   * Returns whether a short prompt may stop the run of other tenants and still come before them, having paid
   * for what is lost.
   * @param lostMs the time that the run has taken
   */
  mayStop(key: string, weight: number, running: ReadonlySet<string>, lostMs: number): boolean {
    const others = [...running];
    if (others.some((each) => this.#isLate(each) || this.#account(each).stopMs < lostMs)) return false;
    const wholeMs = others.reduce((sum, each) => sum + this.#account(each).longestMs, 0);
    if (lostMs > MAX_DONE * wholeMs) return false;
    const weights = this.#weights() + (this.#work.has(key) ? 0 : weight);
    const advanceMs = Math.max(lostMs, this.#account(key).longestMs, (ADVANCE_MS * weight) / weights);
    return this.#lagMs(key) - lostMs >= -advanceMs;
  }

  /** Charges the account whose prompt has stopped a run of others with the time of that run. */
  chargeStop(key: string, running: ReadonlySet<string>, elapsedMs: number): void {
    this.#isAdvance = true;
    const ms = this.#bounded(elapsedMs);
    for (const each of running) this.#account(each).stopMs -= ms;
    this.charge('other', elapsedMs, new Map([[key, { rows: 1, size: 1, ownMs: 0 }]]));
  }

  /** Returns the tenants whose sequences decode together next. */
  streams(work: Work): ReadonlySet<string> {
    this.#isAdvance = false;
    this.#update(work);
    const pool = this.#pool();
    const together = [...work.keys()].filter(this.#streamsAreDue);
    return new Set(this.#gainTogether(pool, together) ? together : pool.filter(this.#streamsAreDue));
  }

  /** Notes that a run has ended. */
  charge(kind: RunKind, elapsedMs: number, parts: ReadonlyMap<string, RunPart>): void {
    const ms = this.#bounded(elapsedMs);
    this.#longestMs = Math.max(ms, FORGET_LONGEST * this.#longestMs);
    let allRows = 0;
    let allSizes = 0;
    let commonMs = ms;
    for (const { rows, size, ownMs } of parts.values()) {
      allRows += rows;
      allSizes += size;
      commonMs -= ownMs;
    }
    commonMs = Math.max(0, commonMs);
    if (parts.size > 1) this.#rowMs = learned(this.#rowMs, ms / allRows);
    this.#advance(ms);
    for (const [key, { rows, size, ownMs }] of parts) {
      const { costs } = this.#account(key);
      const partMs = Math.min(ms, ownMs + (commonMs * size) / allSizes);
      if (parts.size > 1) {
        // A learned cost falls with each use, so that one that is too high is measured again.
        const cost = FORGET_COST * (costs.get(rows) ?? 0);
        costs.set(rows, cost);
        this.#receive(key, kind, partMs, Math.min(ms, ownMs + Math.min(commonMs, CAUTION * cost)));
      } else {
        if (kind === 'decode') costs.set(rows, learned(costs.get(rows), commonMs));
        this.#receive(key, kind, partMs, partMs);
      }
    }
    // What all have gained by computing together, or lost, is no debt. What idle tenants owe is.
    this.#times.settle();
  }

  /** Bounds what a clock that jumps makes of a measured time. */
  #bounded(elapsedMs: number): number {
    const bound = Math.max(LEAST_BOUND_MS, MAX_GROWTH * this.#longestMs);
    return elapsedMs > 0 ? Math.min(elapsedMs, bound) : 0;
  }

  #update(work: Work): void {
    this.#work = work;
    for (const [key, { weight, flex, prompts, rows }] of work) {
      const account = this.#account(key);
      account.weight = flex ? weight * FLEX_WEIGHT : weight;
      if (prompts === 'none' || rows === 0) account.promptLead = 0;
    }
    this.#times.forget(work);
    for (const key of this.#accounts.keys())
      if (!work.has(key) && this.#times.lead(key) <= 0) this.#accounts.delete(key);
  }

  /** The tenants that lag behind; all if none does, but no flex work beside an interactive prompt. */
  #pool(): readonly string[] {
    const all = [...this.#work.keys()];
    const behind = all.filter((key) => this.#lagMs(key) > 0);
    if (behind.length > 0) return behind;
    const interactive = all.filter((key) => !this.#work.get(key)!.flex);
    return interactive.some((key) => this.#work.get(key)!.prompts !== 'none') ? interactive : all;
  }

  /** Returns whether those that lag behind get their share of a decode run of several tenants. */
  #gainTogether(pool: readonly string[], together: readonly string[]): boolean {
    const rows = together.reduce((sum, key) => sum + this.#work.get(key)!.rows, 0);
    const ms = (this.#rowMs ?? Infinity) * rows;
    const weights = this.#weights();
    return pool.every((key) => {
      const { longestMs, weight, costs } = this.#account(key);
      const worthMs = this.#streamsAreDue(key) ? (costs.get(this.#work.get(key)!.rows) ?? 0) : 0;
      return this.#lagMs(key) <= longestMs && worthMs >= (ms * weight) / weights;
    });
  }

  /** Short prompts of others must not hold up a tenant for ever. */
  readonly #isLate = (key: string): boolean =>
    this.#lagMs(key) > Math.max(ADVANCE_MS, LATE_RUNS * this.#account(key).longestMs);

  readonly #promptsAreDue = (key: string): boolean => {
    const { prompts, rows } = this.#work.get(key)!;
    return prompts === 'short' || (prompts === 'long' && (rows === 0 || this.#account(key).promptLead <= 0));
  };

  readonly #streamsAreDue = (key: string): boolean => {
    const { prompts, rows } = this.#work.get(key)!;
    return rows > 0 && (prompts !== 'long' || this.#account(key).promptLead >= 0);
  };

  /**
   * Milliseconds of its share that a tenant has not received; below zero = that it has received too early.
   */
  #lagMs(key: string): number {
    return -this.#times.lead(key) * this.#account(key).weight;
  }

  #advanceMs(key: string): number {
    const { weight, longestMs } = this.#account(key);
    return Math.max(longestMs, (ADVANCE_MS * weight) / this.#weights());
  }

  #weights(): number {
    let sum = 0;
    for (const key of this.#work.keys()) sum += this.#account(key).weight;
    return sum;
  }

  #advance(ms: number): void {
    const weights = this.#weights();
    if (weights > 0) this.#times.now += ms / weights;
    for (const key of this.#accounts.keys()) if (!this.#work.has(key)) this.#times.begin(key);
  }

  #receive(key: string, kind: RunKind, ms: number, worthMs: number): void {
    const account = this.#account(key);
    const { weight } = account;
    account.longestMs = Math.max(ms, FORGET_OWN * account.longestMs);
    const lagMs = this.#lagMs(key);
    const maxLeadMs = this.#isAdvance
      ? this.#advanceMs(key) + account.longestMs
      : Math.max(-lagMs, 2 * account.longestMs);
    // What computing together saves pays for a lag, but is no lead that others would be owed.
    const costMs = Math.max(ms, Math.min(worthMs, lagMs));
    this.#times.charge(key, costMs / weight, maxLeadMs / weight);
    if (kind === 'other') return;
    const leadMs = kind === 'prefill' ? ms * (1 - this.#promptShare) : -ms * this.#promptShare;
    const { promptLead, longestMs, stopMs } = account;
    account.promptLead = Math.max(-longestMs, Math.min(longestMs, promptLead + leadMs));
    account.stopMs = Math.min(stopMs + MAX_STOPPED * ms, Math.max(ADVANCE_MS, longestMs));
  }

  #account(key: string): Account {
    const existing = this.#accounts.get(key);
    if (existing !== undefined) return existing;
    const account = { weight: 1, promptLead: 0, longestMs: 0, stopMs: ADVANCE_MS, costs: new Map() };
    this.#accounts.set(key, account);
    this.#times.begin(key);
    return account;
  }
}

/** @param mean undefined or zero before the first time */
const learned = (mean: number | undefined, ms: number): number =>
  mean ? mean + (ms - mean) * LEARN_COST : ms;
