import type { Block, BudgetUse, LimiterCall, LimiterReply } from './quota/protocol.ts';
import type { DeadEvent } from './usage/event-queue.ts';
import type { NumberedRecord } from './usage/request-records.ts';
import type { UsageRecord } from './usage/usage-record.ts';
import type { UsagePage, UsageQuestion } from './usage/usage-sums.ts';

/** The eight calls of a tenant's object. One of them takes questions of several kinds. */

/** What a tenant and one of its keys have used, and the shares of their limits that they have reached. */
interface SubjectUse {
  readonly tenant: BudgetUse;
  readonly key: BudgetUse;
  /** Newest first. */
  readonly alerts: SpendingAlert[];
}

/** A share of a limit of money was reached. */
export interface SpendingAlert {
  /** Unique per tenant: a share of an amount is reached once per limit and period. */
  readonly id: string;
  /** `tenant`, or the id of a key. */
  readonly subject: string;
  /** Name of the limit; `balance` = a prepaid balance. */
  readonly limit: string;
  /** The UTC day or month; all that was paid in, for a balance. */
  readonly period: string;
  /** In per cent. */
  readonly share: number;
  readonly limitMicros: number;
  readonly spentMicros: number;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Asks for one of the places that a tenant has for objects of a kind: files, uploads, running batches. */
export interface PlaceClaim {
  readonly kind: string;
  /** Id of the object that takes the place. */
  readonly id: string;
  /** Listed objects that count. */
  readonly counted: number;
  /** Ids of all listed objects. */
  readonly listed: readonly string[];
  readonly max: number;
}

/** What one can ask about a tenant. */
export type TenantQuestion =
  /** What tenant and key have used. Open reservations and slices are used, not spent. */
  | { readonly kind: 'use'; readonly keyId: string }
  /** Usage by day, model, key and end user, exact to the last request. */
  | ({ readonly kind: 'usage'; readonly tenantId: string } & UsageQuestion)
  /** The record of an ended request, by its name. */
  | { readonly kind: 'request'; readonly tenantId: string; readonly name: string }
  /** The newest of the ended requests with numbers below this one, the last one first. */
  | {
      readonly kind: 'requests';
      readonly tenantId: string;
      readonly before: number;
      readonly limit: number;
    }
  /** The last UTC days on which keys were used; those without use are missing. */
  | { readonly kind: 'lastUses'; readonly tenantId: string; readonly keyIds: readonly string[] }
  /** None: the object takes the usage of releases up to 0.2.0 over, if it has not done so. */
  | { readonly kind: 'move'; readonly tenantId: string }
  /** Events that were refused too often, by channel, oldest first, after the one with this id. */
  | { readonly kind: 'deadEvents'; readonly limit: number; readonly after: string };

/** The answers, by the kind of the question. */
export interface TenantReplies {
  readonly use: SubjectUse;
  readonly usage: UsagePage;
  readonly request: UsageRecord | null;
  readonly requests: readonly NumberedRecord[];
  readonly lastUses: readonly (readonly [keyId: string, day: string])[];
  readonly move: null;
  readonly deadEvents: readonly DeadEvent[];
}

/** A tenant's object. */
export interface TenantLimiterRpc extends Rpc.DurableObjectBranded {
  exchange(call: LimiterCall): Promise<LimiterReply>;
  block(keyId: string | null, blocked: boolean): Promise<void>;
  /** Returns whether a key or its tenant is blocked. */
  blockOf(keyId: string): Promise<Block | null>;
  /**
   * Refuses everything from now on, and erases the usage. Deletes all data when the open requests have ended,
   * not before `afterMs`: until then, Workers may have the tenant's keys in their caches. With `keepSums`,
   * sums by month and model stay.
   */
  erase(tenantId: string, afterMs: number, keepSums: boolean): Promise<void>;
  /** Tells the balance's sum of entries in micro-units, and the last one's time in Unix milliseconds. */
  paid(credit: number, at: number): Promise<void>;
  /** Takes a place. Returns false if none is left. */
  claim(claim: PlaceClaim): Promise<boolean>;
  /** Returns the answer to a question: see `askTenant`. */
  ask(question: TenantQuestion): Promise<TenantReplies[TenantQuestion['kind']]>;
  /** Sends all dead events again. Returns their number. */
  replayEvents(): Promise<number>;
}
