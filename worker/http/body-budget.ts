import { fitsThreshold } from '@continuo/shared/dynamic-threshold.ts';
import { ApiError } from '@continuo/shared/errors.ts';

/** The body bytes that one request holds. */
export interface HeldBody {
  /** @throws ApiError 503 if the bytes do not fit now */
  take(tenantId: string, bytes: number): void;
  release(): void;
}

/**
 * Limits the bytes of request bodies that one isolate holds at the same time, because all requests of an
 * isolate share its memory. A tenant may hold as many bytes as stay free for others.
 * @param limit bytes
 * @returns a function for the share of each request
 */
export function bodyBudget(limit: number): () => HeldBody {
  const byTenant = new Map<string, number>();
  let free = limit;
  const add = (tenantId: string, bytes: number): void => {
    const held = (byTenant.get(tenantId) ?? 0) + bytes;
    if (held > 0) byTenant.set(tenantId, held);
    else byTenant.delete(tenantId);
    free -= bytes;
  };
  return () => {
    const taken: (readonly [tenantId: string, bytes: number])[] = [];
    return {
      take: (tenantId, bytes) => {
        if (!fitsThreshold(byTenant.get(tenantId) ?? 0, bytes, free, 1)) throw full();
        add(tenantId, bytes);
        taken.push([tenantId, bytes]);
      },
      release: () => {
        for (const [tenantId, bytes] of taken.splice(0)) add(tenantId, -bytes);
      },
    };
  };
}

const full = (): ApiError =>
  new ApiError('server_is_overloaded', 'Too many large request bodies arrive at once. Retry the request.', {
    headers: { 'retry-after': '1' },
  });
