import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { BlockList } from '../../../../worker/limits/objects/block-list.ts';
import { LimiterStorage } from '../../../../worker/limits/objects/limiter-storage.ts';
import { OpenRequests } from '../../../../worker/limits/objects/open-requests.ts';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

const START = Date.UTC(2026, 0, 31, 12);
const TWO_MONTHS = Date.UTC(2026, 2, 1);
const USERS = 6_000;

const usage = { promptTokens: 2, cachedTokens: 0, completionTokens: 4 };
const settlement = {
  status: 'completed' as const,
  usage,
  errorCode: null,
  finishReasons: [],
  upstream: 'origin',
  latencyMs: 1,
  firstTokenMs: null,
};

/** A limiter's requests in a database that outlives it. */
class TestObject {
  readonly #sql = sqlStorage();
  #number = 0;
  #storage!: LimiterStorage;
  requests = this.#open(START);

  #open(now: number): OpenRequests {
    this.#storage = new LimiterStorage(this.#sql, new TenantLedger(this.#sql), () => now);
    return new OpenRequests(this.#storage, new BlockList(this.#sql, now));
  }

  restart(now: number): void {
    this.requests = this.#open(now);
    this.#storage.checkpoint();
    this.#storage.counters.dropUnused(now);
  }

  get inMemory(): number {
    return this.#storage.counters.all().length;
  }

  /** Number of end users in the database. */
  get stored(): number {
    this.#storage.checkpoint();
    return this.#sql.exec<{ count: number }>('SELECT COUNT(*) AS count FROM end_users').one().count;
  }

  /** Reserves 10 tokens for an end user with 15 per month. Returns the id; null if it is refused. */
  reserve(user: number, now: number): string | null {
    this.#number += 1;
    const requestId = `r${this.#number}`;
    const { admitted } = this.requests.reserve(
      {
        requestId,
        tenantId: 't',
        keyId: 'k',
        model: 'm',
        price: null,
        money: 0,
        tokens: 10,
        ttlMs: 30_000,
        tenantLimits: UNLIMITED,
        keyLimits: UNLIMITED,
        endUser: { hash: String(user), limits: { ...UNLIMITED, tokensPerMonth: 15 } },
      },
      now,
    );
    this.#storage.commit();
    return admitted ? requestId : null;
  }

  /** Ends a request that has used 6 tokens. */
  settle(requestId: string): void {
    this.requests.settle({ requestId, settlement }, START);
    this.#storage.commit();
  }
}

test('many end users are counted exactly with few of them in memory, also after restarts', () => {
  const object = new TestObject();
  // One request of the first end user runs all the time.
  const running = object.reserve(0, START)!;
  for (let user = 1; user < USERS; user += 1) object.settle(object.reserve(user, START)!);
  expect(object.inMemory).toBeLessThanOrEqual(5_000);
  expect(object.stored).toBe(USERS);
  const all = Array.from({ length: USERS }, (_, user) => user);
  // The running request has reserved 10 tokens, the others have used 6.
  expect(all.filter((user) => object.reserve(user, START) !== null)).toEqual([]);
  object.restart(START);
  expect(object.inMemory).toBeLessThan(5);
  object.settle(running);
  expect(all.filter((user) => object.reserve(user, START) !== null)).toEqual([]);
});

test('a month after its last request, nothing is stored of an end user', () => {
  const object = new TestObject();
  object.settle(object.reserve(1, START)!);
  object.restart(Date.UTC(2026, 1, 28));
  expect(object.stored).toBe(1);
  object.restart(TWO_MONTHS);
  expect(object.stored).toBe(0);
  expect(object.reserve(1, TWO_MONTHS)).not.toBeNull();
});
