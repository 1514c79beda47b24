import { unchecked } from '@continuo/limits/limit-errors.ts';
import { callObject } from '@continuo/limits/limiter-client.ts';
import type { PlaceClaim } from '@continuo/limits/tenant-rpc.ts';
import type { RequestContext } from '../http/request-context.ts';

/** Objects come to R2 within seconds of their claims, so only the newest can be both listed and claimed. */
const NEWEST = 1_000;

/**
 * Takes one of a tenant's places for an object that is about to be written.
 * @returns false if none is left
 */
export const takePlace = (
  context: RequestContext,
  tenantId: string,
  { listed, ...claim }: PlaceClaim,
): Promise<boolean> =>
  callObject(context, tenantId, (object) =>
    object.claim({ ...claim, listed: listed.slice(0, NEWEST) }),
  ).catch(() => {
    throw unchecked();
  });
