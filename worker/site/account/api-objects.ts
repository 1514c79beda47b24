import type { OriginActivity } from '@continuo/shared/activity.ts';
import type { Batch } from '@continuo/shared/batch.ts';
import type { keyObject, newKeyObject } from '@continuo/shared/key-objects.ts';
import type { ownKey } from '@continuo/shared/own-key.ts';
import type { planObject, tenantObject } from '@continuo/shared/tenant-objects.ts';
import type { requestObject, usageRow } from '@continuo/shared/usage.ts';
import type * as z from 'zod';

/** What the server answers, by its own schemas. */

/** Limits and what counts against them, by name: a newer server may have more of them. */
type Counts = 'limits' | 'used' | 'left';

/** An answer as the page reads it: any word may stand where the schema lists some. */
type Read<T> = T extends string
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Read<Item>[]
    : T extends object
      ? {
          readonly [Name in keyof T as Exclude<Name, 'object'>]: Name extends Counts
            ? Readonly<Record<string, number | null>>
            : Read<T[Name]>;
        }
      : T;

export type OwnKey = Read<z.infer<typeof ownKey>>;
export type KeyObject = Read<z.infer<typeof keyObject>>;
/** A new key, which no other answer shows again. */
export type MadeKey = Read<z.infer<typeof newKeyObject>>;
export type PlanObject = Read<z.infer<typeof planObject>>;
export type TenantObject = Read<z.infer<typeof tenantObject>>;
export type BatchObject = Read<Batch>;
export type RequestRecord = Read<z.infer<typeof requestObject>>;
export type UsageRow = Read<z.infer<typeof usageRow>>;
export type ModelActivity = Read<OriginActivity>['models'][number];
/** What one upstream does. Its fault says why it did not answer; null = it did. */
export type UpstreamActivity = Read<OriginActivity> & { readonly id: string; readonly fault: string | null };

/** A key or an account: what it may use, and has used. */
export type LimitHolder = Pick<OwnKey, Counts>;
export type LimitAlert = OwnKey['alerts'][number];
