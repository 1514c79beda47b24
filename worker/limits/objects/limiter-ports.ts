import type { KnownAccount, ListedAccount } from '@continuo/shared/usage.ts';
import type { Channel, OutgoingEvent } from '../usage/event-queue.ts';

/** What a tenant's object needs of the Worker. */
export interface LimiterPorts {
  /** Has the summary of the usage of all tenants. */
  readonly db: D1Database;
  /** Had the ledger of releases up to 0.2.0. */
  readonly oldDb: D1Database | undefined;
  /** Receives one data point per request. */
  readonly points: AnalyticsEngineDataset | undefined;
  readonly settings: {
    /** Days that sums and single requests are kept. */
    readonly USAGE_DAYS: number;
    readonly REQUEST_DAYS: number;
    /** News reach the summary within so many milliseconds. */
    readonly USAGE_REPORT_MS: number;
    /** Shares of limits of money, in per cent, at which alerts are sent. */
    readonly ALERT_SHARES: readonly number[];
    /** Undefined = nothing is billed. */
    readonly BILLING_URL?: string | undefined;
  };
  /** Sends events once. Returns whether they need not be repeated. */
  deliver(channel: Channel, events: readonly OutgoingEvent[], now: number): Promise<boolean>;
  /** Returns the upstreams' accounts whose names begin with this text; null if they are not known now. */
  accountsUnder(prefix: string): Promise<readonly ListedAccount[] | null>;
  /** Asks one upstream about an account, or all if null. Never fails. */
  usageOf(account: string, upstream: string | null): Promise<KnownAccount>;
}
