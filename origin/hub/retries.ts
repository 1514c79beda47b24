import { HubError, TransientError } from './hub-error.ts';

/** Attempts with growing pauses. */

export interface Patience {
  /** Attempts in a row that may bring nothing. */
  readonly attempts: number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Told before each pause. */
  readonly onRetry: (reason: string, delayMs: number) => void;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 20_000;
/** What a server asks for is waited for up to here; rate limits count by five minutes. */
const LONGEST_WANTED_MS = 300_000;

/**
 * Runs `attempt` until it returns or fails for good. `progressed` says that an attempt brought something, after which
 * counting starts anew: a large file over a bad line may take many attempts.
 * @throws HubError after too many attempts; whatever else than TransientError `attempt` throws
 */
export async function withPatience<T>(
  patience: Patience,
  attempt: (progressed: () => void) => Promise<T>,
): Promise<T> {
  let fruitless = 0;
  const progressed = () => {
    fruitless = 0;
  };
  for (;;) {
    try {
      return await attempt(progressed);
    } catch (error) {
      if (!(error instanceof TransientError)) throw error;
      fruitless += 1;
      if (fruitless >= patience.attempts) {
        throw new HubError(`given up after ${fruitless} attempts: ${error.message}`);
      }
      const wanted = error.retryAfterMs ?? backOff(fruitless, patience.random());
      const delayMs = Math.min(wanted, LONGEST_WANTED_MS);
      patience.onRetry(error.message, delayMs);
      await patience.sleep(delayMs);
    }
  }
}

/** Doubles with each attempt; half of it is drawn, so that many clients do not come back together. */
function backOff(attempt: number, random: number): number {
  const full = Math.min(FIRST_DELAY_MS * 2 ** (attempt - 1), LONGEST_DELAY_MS);
  return Math.round(full * (0.5 + random / 2));
}
