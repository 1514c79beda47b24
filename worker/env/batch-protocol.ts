import type { Batch } from '@continuo/shared/batch.ts';

/** Messages between the Worker and the object of a batch. Plain data, because it crosses machines. */

/** A new batch, in the status `validating`. */
export interface BatchOrder {
  readonly tenantId: string;
  /** The key that created the batch runs its lines. */
  readonly keyId: string;
  readonly batch: Batch;
}

/** A running batch. All calls return it; null if there is none, or it has ended. */
export interface BatchRunRpc extends Rpc.DurableObjectBranded {
  /** Starts the batch. Returns after its validation, or after two seconds. */
  start(order: BatchOrder): Promise<Batch | null>;
  show(): Promise<Batch | null>;
  cancel(): Promise<Batch | null>;
  /** Deletes the batch at once, without results. */
  erase(): Promise<void>;
}
