import type { GenerationEvent, UsageAccount } from '../shared/generation.ts';
import { UsageCount } from '../shared/usage-count.ts';

/** Longer than the edge waits for a Worker that has fallen silent before it asks. */
const REMEMBERED_MS = 600_000;

/** Accounts kept at the same time; the oldest goes first. */
const MOST_ACCOUNTS = 100_000;

interface Account {
  readonly count: UsageCount;
  endedAt: number | null;
}

/** The account of one generation, for as long as it runs. */
export interface OpenAccount {
  observe(events: readonly GenerationEvent[]): void;
  end(): void;
  /** Nothing came of it: it is as if it had never begun. */
  withdraw(): void;
}

/** What running and recent generations have used and how they ended, for whoever must bill one whose reader never reported. */
export class RecentUsage {
  /** By the name the Worker gave them, in order of their beginning. */
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts the events of one generation until its end. */
  begin(id: string): OpenAccount {
    this.#forget();
    const account: Account = { count: new UsageCount(), endedAt: null };
    this.#accounts.set(id, account);
    return {
      observe: (events) => {
        for (const event of events) account.count.add(event);
      },
      end: () => {
        account.endedAt = this.#now();
      },
      withdraw: () => {
        if (this.#accounts.get(id) === account) this.#accounts.delete(id);
      },
    };
  }

  /** Null for a name that is unknown, or whose generation ended too long ago. */
  of(id: string): UsageAccount | null {
    const account = this.#accounts.get(id);
    if (account === undefined) return null;
    const { usage, finishReasons } = account.count;
    return { usage, finishReasons: [...finishReasons], ended: account.endedAt !== null };
  }

  /** Accounts behind a long generation wait for it; there are never more than the bound. */
  #forget(): void {
    for (const [id, { endedAt }] of this.#accounts) {
      const over = endedAt !== null && this.#now() - endedAt > REMEMBERED_MS;
      if (!over && this.#accounts.size < MOST_ACCOUNTS) return;
      this.#accounts.delete(id);
    }
  }
}
