import type { RunPart, TimeShares } from '../scheduling/time-shares.ts';

/** A run that a short prompt of another tenant may stop. */
interface StoppableRun {
  readonly accounts: ReadonlySet<string>;
  readonly startedAt: number;
  readonly stop: AbortController;
  /** The account whose prompt has stopped it; null also if it was done before. */
  stoppedBy: string | null;
}

/** The part of a run that is one row. */
export const ONE_ROW: RunPart = { rows: 1, size: 1, ownMs: 0 };

/** Charges the time of runs to the tenants in them, and stops a run for a short prompt of another tenant. */
export class RunClock {
  readonly #shares: TimeShares;
  readonly #now: () => number;
  /** What the model computes now. */
  #stoppable: StoppableRun | null = null;
  #wasStopped = false;
  /** The time of the step before this has been charged. */
  #chargedUntil = 0;

  constructor(shares: TimeShares, now: () => number) {
    this.#shares = shares;
    this.#now = now;
  }

  /** Whether the last run was stopped. */
  get wasStopped(): boolean {
    return this.#wasStopped;
  }

  /** Begins a step. What was computed before it is charged to no tenant. */
  begin(now: number): void {
    this.#chargedUntil = now;
  }

  /** Charges an account with work outside of runs that has just ended. */
  charge(account: string, ms: number): void {
    this.#shares.charge('other', ms, new Map([[account, ONE_ROW]]));
    this.#chargedUntil += ms;
  }

  /** Charges a prompt's run that the device has made before what the last run of the step waited for. */
  chargeBegun(account: string, deviceMs: number): void {
    const ms = Math.min(deviceMs, Math.max(0, this.#now() - this.#chargedUntil));
    this.#chargedUntil += ms;
    this.#shares.charge('prefill', ms, new Map([[account, ONE_ROW]]));
  }

  newRun(accounts: ReadonlySet<string>): StoppableRun {
    return { accounts, startedAt: this.#now(), stop: new AbortController(), stoppedBy: null };
  }

  /** The model computes a run from now on; null = one that cannot be stopped. */
  enter(run: StoppableRun | null): void {
    this.#stoppable = run;
  }

  /**
   * Stops the run that the model computes now, if it is one of other tenants. The request of the account has
   * just been opened. It must have a short prompt, and its tenant the time for both. The run is made again
   * later.
   */
  stopFor(account: string, weight: number, isShortNext: () => boolean): void {
    const run = this.#stoppable;
    if (run === null || run.stoppedBy !== null || run.accounts.has(account)) return;
    if (!isShortNext()) return;
    if (!this.#shares.mayStop(account, weight, run.accounts, this.#now() - run.startedAt)) return;
    run.stoppedBy = account;
    run.stop.abort();
  }

  /**
   * Charges a run that has ended, or that was stopped, with everything since the last one of its step:
   * scheduling, copies, the model, sampling and its messages.
   */
  chargeRun(kind: 'prefill' | 'decode', run: StoppableRun | null, parts: ReadonlyMap<string, RunPart>): void {
    const now = this.#now();
    const ms = now - this.#chargedUntil;
    this.#chargedUntil = now;
    this.#stoppable = null;
    const stoppedBy = run?.stoppedBy ?? null;
    this.#wasStopped = stoppedBy !== null;
    if (run && stoppedBy !== null) this.#shares.chargeStop(stoppedBy, run.accounts, ms);
    else this.#shares.charge(kind, ms, parts);
  }
}
