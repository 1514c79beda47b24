import type { Claim } from '../../../worker/limits/claim.ts';
import { Growth } from '../../../worker/limits/growth.ts';
import type { IsolateLimiter } from '../../../worker/limits/isolate-limiter.ts';
import { NOTHING, type Spend } from '../../../worker/limits/quota/budget.ts';
import type { ReservationResult } from '../../../worker/limits/quota/protocol.ts';
import { Reservation } from '../../../worker/limits/reservation.ts';

const REFUSED: ReservationResult = {
  admitted: false,
  headers: {},
  refusal: { kind: 'tokens', subject: 'tenant', limit: 9, used: 9, requested: 1, retryAfterMs: 50_000 },
};

/**
 * The growth of a completion of up to 2,000 tokens that waits for its minute, which has no room.
 * @param answer what its object answers
 */
export function waitingGrowth(reserved: Spend = NOTHING, answer: 'refusal' | 'none' = 'refusal') {
  const grown: Spend[] = [];
  let slice = 0;
  const limiter: Pick<IsolateLimiter, 'extend' | 'raise'> = {
    extend: ({ tokens }) => {
      const more = { tokens: Math.min(tokens, slice), money: 0 };
      if (more.tokens > 0) grown.push(more);
      return more;
    },
    raise: () => (answer === 'none' ? new Promise(() => {}) : Promise.resolve(REFUSED)),
  };
  const context = {
    now: () => 0,
    batchKey: null,
    settings: { REQUEST_TIMEOUT_MS: 600_000 },
    backoff: { pause: () => new Promise(() => {}) },
  };
  const principal = { tenant: { waitForTokens: true } };
  const claim = { limiter, principal, context, of: (spend: Spend) => spend } as unknown as Claim;
  const cost = { prompt: 0, tokens: 0, most: 2_000, model: 'm', price: null };
  const growth = new Growth(claim, new Reservation('id', reserved, cost));
  const fillSlice = () => {
    slice = 500;
  };
  return { growth, grown, fillSlice };
}
