import { ApiError } from '@continuo/shared/errors.ts';

/**
 * Limits the bytes of request bodies that one isolate holds at the same time, because all requests of an isolate share its
 * memory. A tenant gets more only while what it holds is not more than what then stays free (a dynamic threshold, Choudhury
 * and Hahne 1998). So one tenant gets about half, and a part stays free for others.
 */
export class BodyBudget {
  readonly #limit: number;
  readonly #byTenant = new Map<string, number>();
  #held = 0;

  /** @param limit bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @throws ApiError 503 if the bytes do not fit now */
  take(tenantId: string, bytes: number): void {
    const own = this.#byTenant.get(tenantId) ?? 0;
    if (own > this.#limit - this.#held - bytes) throw full();
    this.#byTenant.set(tenantId, own + bytes);
    this.#held += bytes;
  }

  giveBack(tenantId: string, bytes: number): void {
    const own = (this.#byTenant.get(tenantId) ?? 0) - bytes;
    if (own > 0) this.#byTenant.set(tenantId, own);
    else this.#byTenant.delete(tenantId);
    this.#held -= bytes;
  }
}

const full = (): ApiError =>
  new ApiError('server_is_overloaded', 'Too many large request bodies arrive at once. Retry the request.', {
    headers: { 'retry-after': '1' },
  });

/** The body bytes that one request holds. */
export class HeldBody {
  readonly #budget: BodyBudget;
  #taken: (readonly [tenantId: string, bytes: number])[] = [];

  constructor(budget: BodyBudget) {
    this.#budget = budget;
  }

  /** @throws ApiError 503 if the bytes do not fit now */
  take(tenantId: string, bytes: number): void {
    this.#budget.take(tenantId, bytes);
    this.#taken.push([tenantId, bytes]);
  }

  release(): void {
    for (const [tenantId, bytes] of this.#taken.splice(0)) this.#budget.giveBack(tenantId, bytes);
  }
}
