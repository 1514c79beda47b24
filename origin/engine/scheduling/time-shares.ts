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

interface Account {
  /** Milliseconds of its share that it has not received; below zero = that it has received too early. */
  lag: number;
  weight: number;
  /** Milliseconds by which its prompts are ahead of its streams, while it has both. */
  promptLead: number;
  /** The longest part of a run that it had recently. */
  longestMs: number;
  /** Milliseconds of its runs that may be lost because short prompts of others stop them. */
  stopMs: number;
  /** By number of its rows: learned milliseconds of a decode run with only these, without `ownMs`; 0 = unknown. */
  readonly costs: number[];
}

/** For short prompts, a tenant may take its share of so much time in advance, or one run; no tenant is late before. */
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
/** A learned cost falls with each use, so that one that is too high is measured again. */
const FORGET_COST = 0.995;
const LEARN_COST = 1 / 8;
/** An estimate that is too high must not cost a tenant its share. */
const CAUTION = 0.9;

/**
 * Shares the engine's time between tenants, by measured milliseconds. Each tenant with work gets as much as if it had the
 * engine alone for its weighted share of the time. Pure: the caller measures the runs and reports them.
 *
 * Each run adds to every tenant's lag its share of the run. It subtracts from the lags of the tenants in it what the run was
 * worth to them: the time that their rows would have taken alone. Tenants that lag behind are computed first. If none does,
 * all are computed together, which gives the most throughput. Idle tenants collect no credit, but what they have
 * received too early stays charged until their share of the time has made up for it.
 */
export class TimeShares {
  readonly #promptShare: number;
  /** Those that computed a chunk least recently come first. */
  readonly #accounts = new Map<string, Account>();
  #work: Work = new Map();
  #longestMs = 0;
  /** Whether the next run is a chunk of a short prompt that goes first. */
  #isAdvance = false;
  /** Learned from decode runs of several tenants: the milliseconds of a row; empty = unknown. */
  readonly #rowCost: number[] = [];

  /** @param promptShare the part of a tenant's time that its prompts get while it also has streams */
  constructor(promptShare = 0.5) {
    this.#promptShare = promptShare;
  }

  /** Returns the tenant that computes a chunk next; null if no prompt is due. */
  prompt(work: Work): string | null {
    this.#update(work);
    const due = this.#pool().filter(this.#promptsAreDue);
    const late = this.#furthestBehind(due.filter(([key]) => this.#isLate(this.#account(key))));
    this.#isAdvance = false;
    if (late !== null) return late;
    const short = [...work].filter(([key, { flex, prompts }]) => {
      return !flex && prompts === 'short' && this.#account(key).lag >= -this.#advanceMs(this.#account(key));
    });
    const first = this.#furthestBehind(short);
    this.#isAdvance = first !== null;
    return first ?? this.#furthestBehind(due);
  }

  /**
   * Returns whether a short prompt may stop the run of other tenants and still come before them, having paid for what is lost.
   * @param lostMs the time that the run has taken
   */
  mayStop(key: string, weight: number, running: ReadonlySet<string>, lostMs: number): boolean {
    const others = [...running].map((one) => this.#accounts.get(one));
    if (others.some((other) => !other || this.#isLate(other) || other.stopMs < lostMs)) return false;
    const wholeMs = others.reduce((sum, other) => sum + other!.longestMs, 0);
    if (lostMs > MAX_DONE * wholeMs) return false;
    const { lag, longestMs } = this.#accounts.get(key) ?? newAccount();
    const weights = this.#weights() + (this.#work.has(key) ? 0 : weight);
    return lag - lostMs >= -Math.max(lostMs, longestMs, (ADVANCE_MS * weight) / weights);
  }

  /** Charges the account whose prompt has stopped a run of others with the time of that run. */
  chargeStop(key: string, running: ReadonlySet<string>, elapsedMs: number): void {
    this.#isAdvance = true;
    const ms = this.#bounded(elapsedMs);
    for (const [one, account] of this.#accounts) if (running.has(one)) account.stopMs -= ms;
    this.charge('other', elapsedMs, new Map([[key, { rows: 1, size: 1, ownMs: 0 }]]));
  }

  /** Returns the tenants whose sequences decode together next. */
  streams(work: Work): ReadonlySet<string> {
    this.#isAdvance = false;
    this.#update(work);
    const pool = this.#pool();
    const together = [...work].filter(this.#streamsAreDue);
    const due = this.#gainTogether(pool, together) ? together : pool.filter(this.#streamsAreDue);
    return new Set(due.map(([key]) => key));
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
    if (parts.size > 1) learn(this.#rowCost, 0, ms / allRows);
    this.#addShares(ms);
    for (const [key, { rows, size, ownMs }] of parts) {
      const account = this.#accounts.get(key) ?? newAccount();
      if (kind === 'other') this.#accounts.set(key, account);
      else if (!this.#accounts.has(key)) continue;
      const partMs = Math.min(ms, ownMs + (commonMs * size) / allSizes);
      const worthMs =
        parts.size === 1 ? partMs : Math.min(ms, ownMs + worthOf(account.costs, rows, commonMs));
      if (parts.size === 1 && kind === 'decode') learn(account.costs, rows, commonMs);
      this.#receive(key, account, kind, partMs, Math.max(partMs, worthMs));
    }
    this.#settle();
  }

  /** Bounds what a clock that jumps makes of a measured time. */
  #bounded(elapsedMs: number): number {
    const bound = Math.max(LEAST_BOUND_MS, MAX_GROWTH * this.#longestMs);
    return elapsedMs > 0 ? Math.min(elapsedMs, bound) : 0;
  }

  #update(work: Work): void {
    this.#work = work;
    for (const [key, { weight, flex, prompts, rows }] of work) {
      const account = this.#accounts.get(key) ?? newAccount();
      account.weight = flex ? weight * FLEX_WEIGHT : weight;
      if (prompts === 'none' || rows === 0) account.promptLead = 0;
      this.#accounts.set(key, account);
    }
    for (const [key, { lag }] of this.#accounts) if (lag >= 0 && !work.has(key)) this.#accounts.delete(key);
  }

  /** The tenants that lag behind; all if none does, but no flex work beside an interactive prompt. */
  #pool(): [string, TenantWork][] {
    const all = [...this.#work];
    const behind = all.filter(([key]) => this.#account(key).lag > 0);
    if (behind.length > 0) return behind;
    const interactive = all.filter(([, { flex }]) => !flex);
    return interactive.some(([, { prompts }]) => prompts !== 'none') ? interactive : all;
  }

  /** Returns whether those that lag behind get their share of a decode run of several tenants. */
  #gainTogether(
    pool: readonly (readonly [string, TenantWork])[],
    together: readonly (readonly [string, TenantWork])[],
  ): boolean {
    const ms = (this.#rowCost[0] ?? Infinity) * together.reduce((sum, [, { rows }]) => sum + rows, 0);
    const weights = this.#weights();
    return pool.every(([key, work]) => {
      const { lag, longestMs, weight, costs } = this.#account(key);
      const worthMs = this.#streamsAreDue([key, work]) ? (costs[work.rows] ?? 0) : 0;
      return lag <= longestMs && worthMs >= (ms * weight) / weights;
    });
  }

  /** Short prompts of others must not hold up a tenant for ever. */
  #isLate({ lag, longestMs }: Account): boolean {
    return lag > Math.max(ADVANCE_MS, LATE_RUNS * longestMs);
  }

  #advanceMs({ weight, longestMs }: Account): number {
    return Math.max(longestMs, (ADVANCE_MS * weight) / this.#weights());
  }

  #weights(): number {
    let sum = 0;
    for (const key of this.#work.keys()) sum += this.#account(key).weight;
    return sum;
  }

  readonly #promptsAreDue = ([key, { prompts, rows }]: readonly [string, TenantWork]): boolean =>
    prompts === 'short' || (prompts === 'long' && (rows === 0 || this.#account(key).promptLead <= 0));

  readonly #streamsAreDue = ([key, { prompts, rows }]: readonly [string, TenantWork]): boolean =>
    rows > 0 && (prompts !== 'long' || this.#account(key).promptLead >= 0);

  /** Of tenants that are equally far behind, the one whose last chunk was computed first. */
  #furthestBehind(candidates: readonly (readonly [string, TenantWork])[]): string | null {
    const keys = new Set(candidates.map(([key]) => key));
    let best: string | null = null;
    for (const [key, account] of this.#accounts) {
      if (keys.has(key) && (best === null || behind(account) > behind(this.#account(best)))) best = key;
    }
    return best;
  }

  #addShares(ms: number): void {
    const weights = this.#weights();
    if (weights === 0) return;
    for (const [key, account] of this.#accounts) {
      account.lag += (ms * account.weight) / weights;
      if (!this.#work.has(key)) account.lag = Math.min(0, account.lag);
    }
  }

  #receive(key: string, account: Account, kind: RunKind, ms: number, worthMs: number): void {
    // What computing together saves pays for a lag, but is no lead that others would be owed.
    const before = account.lag;
    const lag = Math.max(account.lag - worthMs, Math.min(0, account.lag - ms));
    account.longestMs = Math.max(ms, FORGET_OWN * account.longestMs);
    const floor = this.#isAdvance
      ? -this.#advanceMs(account) - account.longestMs
      : Math.min(before, -2 * account.longestMs);
    account.lag = Math.max(floor, lag);
    if (kind === 'other') return;
    const lead =
      account.promptLead + (kind === 'prefill' ? ms * (1 - this.#promptShare) : -ms * this.#promptShare);
    account.promptLead = Math.max(-account.longestMs, Math.min(account.longestMs, lead));
    account.stopMs = Math.min(account.stopMs + MAX_STOPPED * ms, Math.max(ADVANCE_MS, account.longestMs));
    if (kind === 'decode') return;
    this.#accounts.delete(key);
    this.#accounts.set(key, account);
  }

  /** Moves all lags so that one is zero: what all have gained by computing together, or lost, is no debt. What idle tenants owe is. */
  #settle(): void {
    const all = [...this.#accounts.values()];
    const shift = Math.max(0, Math.min(...all.map(behind))) + Math.min(0, Math.max(...all.map(behind)));
    if (shift !== 0 && Number.isFinite(shift))
      for (const account of all) account.lag -= shift * account.weight;
  }

  #account(key: string): Account {
    return this.#accounts.get(key)!;
  }
}

const behind = ({ lag, weight }: Account): number => lag / weight;

const newAccount = (): Account => ({
  lag: 0,
  weight: 1,
  promptLead: 0,
  longestMs: 0,
  stopMs: ADVANCE_MS,
  costs: [],
});

function learn(costs: number[], rows: number, ms: number): void {
  const known = costs[rows] ?? 0;
  costs[rows] = known === 0 ? ms : known + (ms - known) * LEARN_COST;
}

/** Returns what the common part of a run was worth to a tenant. */
function worthOf(costs: number[], rows: number, commonMs: number): number {
  const known = (costs[rows] ?? 0) * FORGET_COST;
  costs[rows] = known;
  return Math.min(commonMs, CAUTION * known);
}
