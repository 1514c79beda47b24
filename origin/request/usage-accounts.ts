import { type GenerationEvent, isTerminal, type UsageAccount } from '../../shared/generation.ts';
import { Tally } from '../../shared/tally.ts';

/** Longer than the edge waits for a Worker that has fallen silent before it asks. */
const REMEMBERED_MS = 600_000;

/** Accounts kept at the same time; the oldest goes first. */
const MOST_ACCOUNTS = 100_000;

interface Account {
  readonly tally: Tally;
  readonly receivedAt: number;
  errorCode: string | null;
  endedAt: number | null;
}

/** The account of one generation, for as long as it runs. */
export interface OpenAccount {
  observe(events: readonly GenerationEvent[]): void;
  /** As it stands. */
  told(): UsageAccount;
  /** Nothing more is generated. */
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

  /**
   * Counts the events of one generation until its end.
   * @param receivedAt when its request came, on the clock of this
   */
  begin(id: string, receivedAt: number): OpenAccount {
    this.#forget();
    const account: Account = {
      tally: new Tally(this.#now),
      receivedAt,
      errorCode: null,
      endedAt: null,
    };
    this.#accounts.set(id, account);
    return {
      observe: (events) => {
        for (const event of events) this.#observe(account, event);
      },
      told: () => told(account),
      end: () => {
        account.endedAt ??= this.#now();
      },
      withdraw: () => {
        if (this.#accounts.get(id) === account) this.#accounts.delete(id);
      },
    };
  }

  /** Null for a name that is unknown, or whose generation ended too long ago. */
  of(id: string): UsageAccount | null {
    const account = this.#accounts.get(id);
    return account === undefined ? null : told(account);
  }

  #observe(account: Account, event: GenerationEvent): void {
    account.tally.add(event);
    if (event.type === 'error') account.errorCode = event.code;
    // Its reader knows the end before the connection has gone, and asks at once.
    if (isTerminal(event)) account.endedAt ??= this.#now();
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

function told({ tally, receivedAt, errorCode, endedAt }: Account): UsageAccount {
  const { usage, finishReasons, queueMs, firstTokenAt } = tally;
  return {
    usage,
    finishReasons: [...finishReasons],
    ended: endedAt !== null,
    errorCode,
    queueMs,
    // The clock may have been set back meanwhile; an account that nobody can read would end the stream it stands in.
    firstTokenMs: firstTokenAt === null ? null : Math.max(0, firstTokenAt - receivedAt),
  };
}
