import type { Positions } from '../usage/event-queue.ts';
import type { TenantLedger } from '../usage/tenant-ledger.ts';
import { reportUsage } from '../usage/usage-summary.ts';
import { DAY_MS, dayName } from '../usage/usage-sums.ts';
import type { LimiterStorage } from './limiter-storage.ts';
import type { UsageMove } from './usage-move.ts';

interface Duties {
  readonly ledger: TenantLedger;
  readonly move: UsageMove;
  readonly storage: LimiterStorage;
  readonly db: D1Database;
  /** Days that sums and single requests are kept; see the settings. */
  readonly usageDays: number;
  readonly requestDays: number;
  /** Single requests that are kept in any case. */
  readonly kept: () => readonly Positions[];
  /** News reach the summary within so many milliseconds. */
  readonly reportWithinMs: number;
  /** From 0 to 1: the moment of this object within each interval. */
  readonly phase: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** A report that has failed is repeated after this time, or after the interval of reports if that is less. */
const RETRY_MS = 60_000;
/** Objects may have 10 GB. */
const MAX_DATABASE_BYTES = 9_000_000_000;
const KEY = 'usage';

/** What the object remembers of its duties. */
interface Done {
  /** The tenant of the object; null if no request has ended yet. */
  readonly tenantId: string | null;
  /** The last UTC day on which old days and old requests were looked for. */
  readonly day: string;
}

/**
 * What a tenant's ledger needs from time to time: reports to the summary of all tenants, retention, and
 * months. The object's alarm does it wherever the Worker runs.
 */
export class UsageDuties {
  readonly #duties: Duties;
  readonly #kv: SyncKvStorage;
  #done: Done;
  /** Unix milliseconds at which news are reported; null = there are none. */
  #reportAt: number | null = null;
  #reporting: Promise<void> = Promise.resolve();
  /** Unix milliseconds from which `tidy` finds something; null = there is nothing. */
  #tidyFrom: number | null;

  constructor(kv: SyncKvStorage, duties: Duties) {
    this.#kv = kv;
    this.#duties = duties;
    this.#done = kv.get<Done>(KEY) ?? { tenantId: null, day: '' };
    const { ledger, storage } = duties;
    this.#tidyFrom = ledger.tidyFrom(duties.requestDays, duties.usageDays);
    if (ledger.hasNews || storage.records.length > 0) this.#reportAt = this.#nextReport();
  }

  /** Requests of this tenant have ended. */
  note(tenantId: string): void {
    if (this.#done.tenantId === null) this.#remember({ tenantId });
    this.#reportAt ??= this.#nextReport();
    const { requestDays, usageDays, now } = this.#duties;
    this.#tidyFrom ??= now() + Math.min(requestDays || usageDays, usageDays) * DAY_MS;
  }

  /**
   * Takes the usage of older releases over, if that has not happened.
   * @param isForced see `UsageMove.run`
   * @throws what the database throws
   */
  async ready(tenantId: string, isForced = false): Promise<void> {
    const { ledger, move, requestDays, usageDays } = this.#duties;
    if (!(await move.run(tenantId, isForced))) return;
    this.#tidyFrom = ledger.tidyFrom(requestDays, usageDays);
    this.note(tenantId);
  }

  #remember(done: Partial<Done>): void {
    this.#done = { ...this.#done, ...done };
    this.#kv.put(KEY, this.#done);
  }

  /** The next moment of this object: each has another one, so that not all report at once. */
  #nextReport(): number {
    const { now, phase, reportWithinMs } = this.#duties;
    const start = Math.floor(now() / reportWithinMs) * reportWithinMs + Math.floor(phase * reportWithinMs);
    return start > now() ? start : start + reportWithinMs;
  }

  /** Unix milliseconds at which something is to be done; null = nothing. */
  nextDue(): readonly (number | null)[] {
    const nextDay = Date.parse(this.#done.day || dayName(0)) + DAY_MS;
    return [this.#reportAt, this.#tidyFrom && Math.max(this.#tidyFrom, nextDay)];
  }

  /** Once a day: deletes old requests and adds old days to their months. Returns whether it was due. */
  tidy(now: number): boolean {
    const { ledger, storage, usageDays, requestDays, kept } = this.#duties;
    const day = dayName(now);
    if (day <= this.#done.day) return false;
    storage.checkpoint();
    ledger.requests.prune(now - requestDays * DAY_MS, kept());
    ledger.requests.shrinkTo(MAX_DATABASE_BYTES);
    ledger.rollUp(dayName(now - usageDays * DAY_MS), storage.number);
    if (ledger.hasNews) this.#reportAt ??= this.#nextReport();
    this.#tidyFrom = ledger.tidyFrom(requestDays, usageDays);
    this.#remember({ day });
    return true;
  }

  /** Reports the news if they are due. Never fails: then it tries again later. */
  async report(now: number): Promise<void> {
    if (this.#reportAt === null || this.#reportAt > now) return;
    const { tenantId } = this.#done;
    this.#reportAt = null;
    if (tenantId === null) return;
    await this.reportNow(tenantId).catch(() => {
      // The database's error may quote rows, so it is not logged.
      console.error(JSON.stringify({ event: 'usage_report_failed' }));
      this.#reportAt = this.#duties.now() + Math.min(RETRY_MS, this.#duties.reportWithinMs);
    });
  }

  /** @throws what the database throws; the news stay */
  reportNow(tenantId: string): Promise<void> {
    this.#reporting = this.#reporting.catch(() => {}).then(() => this.#send(tenantId));
    return this.#reporting;
  }

  async #send(tenantId: string): Promise<void> {
    const { ledger, storage, db } = this.#duties;
    await this.ready(tenantId);
    if (storage.records.length > 0) storage.checkpoint();
    const { number } = storage;
    await reportUsage(db, tenantId, number, ledger.news(number));
    ledger.confirm(number);
    if (ledger.hasNews || storage.records.length > 0) this.#reportAt ??= this.#nextReport();
  }
}
