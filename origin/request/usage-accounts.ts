import { type GenerationEvent, isTerminal } from '@continuo/shared/generation.ts';
import type { ListedAccount, UsageAccount } from '@continuo/shared/usage.ts';
import { UsageTally } from '@continuo/shared/usage.ts';

/** Longer than the limiter waits for a silent Worker before it asks for the account. */
const KEPT_MS = 600_000;

/** Accounts kept at the same time; the oldest goes first. */
const MAX_ACCOUNTS = 100_000;

interface Account {
  readonly model: string;
  readonly tally: UsageTally;
  readonly receivedAt: number;
  endedAt: number | null;
}

/** The account of one generation while it runs. */
interface OpenAccount {
  observe(events: readonly GenerationEvent[]): void;
  /** Marks the generation as ended. */
  end(): void;
  /** Removes the account of a request that was refused before it started. */
  withdraw(): void;
}

/** Keeps the token usage of generations, so that the limiter can bill requests whose Worker died. */
export class UsageAccounts {
  /** By the name that the Worker gave, oldest first. */
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Opens an account that counts the events of one generation.
   * @param receivedAt arrival of its request, on the clock of the constructor
   */
  open(id: string, model: string, receivedAt: number): OpenAccount {
    this.#evict();
    const account: Account = { model, tally: new UsageTally(this.#now), receivedAt, endedAt: null };
    this.#accounts.set(id, account);
    return {
      observe: (events) => {
        for (const event of events) this.#observe(account, event);
      },
      end: () => {
        account.endedAt ??= this.#now();
      },
      withdraw: () => {
        if (this.#accounts.get(id) === account) this.#accounts.delete(id);
      },
    };
  }

  /** Returns null for an unknown name, or if the generation ended too long ago. */
  find(id: string): UsageAccount | null {
    const account = this.#accounts.get(id);
    return account === undefined ? null : snapshot(account);
  }

  /** Returns the accounts whose names begin with this text. */
  under(prefix: string): ListedAccount[] {
    return [...this.#accounts]
      .filter(([id]) => id.startsWith(prefix))
      .map(([account, { model, tally, receivedAt }]) => {
        return { account, model, usage: tally.usage, ageMs: Math.max(0, this.#now() - receivedAt) };
      });
  }

  #observe(account: Account, event: GenerationEvent): void {
    account.tally.add(event);
    // The reader knows the end before the connection closes, and may ask at once.
    if (isTerminal(event)) account.endedAt ??= this.#now();
  }

  /** Stops at the first account that is still needed, unless there are too many. */
  #evict(): void {
    for (const [id, { endedAt }] of this.#accounts) {
      const expired = endedAt !== null && this.#now() - endedAt > KEPT_MS;
      if (!expired && this.#accounts.size < MAX_ACCOUNTS) return;
      this.#accounts.delete(id);
    }
  }
}

function snapshot({ tally, receivedAt, endedAt }: Account): UsageAccount {
  const { usage, finishReasons, firstTokenAt } = tally;
  return {
    usage,
    finishReasons: [...finishReasons],
    ended: endedAt !== null,
    // A clock that is set back must not make the account invalid.
    firstTokenMs: firstTokenAt === null ? null : Math.max(0, firstTokenAt - receivedAt),
  };
}
