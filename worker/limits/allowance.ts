import type { ApiError } from '@continuo/shared/errors.ts';
import type { ExceededLimit, ReservationResult, Spend } from '../env/limiter-protocol.ts';
import { affordable, costOf, type Price, type PricedPrompt } from '../prices/price.ts';
import { isEndUser } from './end-user.ts';
import { type Refusal, unchecked } from './limit-errors.ts';
import { eachOf } from './quota/budget.ts';
import { FIRST_PART, type RequestTokens } from './request-cost.ts';

/** Further parts are as large as what was used, up to this. */
const MAX_PART = 1_024;
/** The next part is reserved when fewer tokens are left. It may take a round trip to home. */
const AHEAD = FIRST_PART / 2;
/** Pauses before another attempt if home does not answer. */
const RETRY_MS = [500, 1_000, 2_000];

/** The limit that ended a completion, as its usage names it. */
const LIMIT_FIELDS = {
  tokens: 'tokens_per_minute',
  day: 'tokens_per_day',
  month: 'tokens_per_month',
  moneyDay: 'micros_per_day',
  moneyMonth: 'micros_per_month',
  balance: 'balance',
} as const satisfies Partial<Record<ExceededLimit['kind'], string>>;

export interface AllowanceOptions {
  /** What is reserved now. */
  readonly reserved: Spend;
  readonly tokens: Pick<RequestTokens, 'prompt' | 'most'>;
  readonly price: Price | null;
  /** Reserves up to so much more from a slice. Returns how much it could. */
  readonly growHere: (more: Spend) => Spend;
  /** Raises the reservation at home to a total, or to what is left. */
  readonly growAtHome: (total: Spend) => Promise<ReservationResult>;
  /** Returns the error of a request that must not go on. */
  readonly errorOf: (refusal: Refusal) => ApiError;
  readonly pause: (ms: number) => Promise<unknown>;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Waits for a limit per minute. Otherwise it waits only for what isolates hold unused. */
  readonly waits: boolean;
  /** Unix milliseconds after which the request waits no longer. */
  readonly waitsUntil: number;
}

/**
 * The tokens and the money that a running request has reserved. They grow while it generates, so that a
 * budget is not blocked by maxima that few requests reach.
 */
export class Allowance {
  readonly #options: AllowanceOptions;
  #reserved: Spend;
  #tokens: AllowanceOptions['tokens'];
  /** Prompt tokens that were in the prefix cache. */
  #cachedTokens = 0;
  /** Tokens that the reserved tokens and the reserved money suffice for. */
  #usable = 0;
  /** The only call under way. */
  #growing: Promise<ExceededLimit | null> | null = null;
  /** Tokens that were reserved when more were last reserved ahead of need. */
  #aheadOf = -1;
  #ended = false;
  readonly #end = Promise.withResolvers<null>();

  constructor(options: AllowanceOptions) {
    this.#options = options;
    this.#tokens = options.tokens;
    this.#reserved = options.reserved;
    this.#raise(options.reserved);
  }

  get reserved(): Spend {
    return this.#reserved;
  }

  get usable(): number {
    return this.#usable;
  }

  /** The prompts have been counted, and at least so much is reserved. */
  begin(tokens: AllowanceOptions['tokens'], reserved: Spend): void {
    this.#tokens = tokens;
    this.#raise(reserved);
  }

  #raise(reserved: Spend): void {
    this.#reserved = eachOf((name) => Math.max(this.#reserved[name], reserved[name]));
    const { tokens, money } = this.#reserved;
    this.#usable = Math.min(tokens, affordable(this.#options.price, money, this.#prompt));
  }

  get #prompt(): PricedPrompt {
    return { promptTokens: this.#tokens.prompt, cachedTokens: this.#cachedTokens };
  }

  /** So many prompt tokens were in the prefix cache: what they save pays for others. */
  cached(tokens: number): void {
    this.#cachedTokens = Math.min(tokens, this.#tokens.prompt);
    this.#raise(this.#reserved);
  }

  /** Returns whether the request may use so many tokens. Other servers' estimates may exceed the maximum. */
  covers(needed: number): boolean {
    return Math.min(needed, this.#tokens.most) <= this.#usable;
  }

  /** Reserves more ahead of need. */
  note(used: number): void {
    if (this.#ended || this.#aheadOf === this.#usable || this.covers(used + AHEAD)) return;
    this.#aheadOf = this.#usable;
    // `cover` asks again, and fails if that fails.
    void this.#grow(used).catch(() => {});
  }

  /**
   * Waits until the request may use so many tokens, or has ended. Returns the limit that has no room for
   * them, or null.
   * @throws ApiError if the key was blocked; 503 if home cannot be reached
   */
  async cover(needed: number): Promise<string | null> {
    const { pause, now, waits, waitsUntil } = this.#options;
    while (!this.#ended && !this.covers(needed)) {
      const limit = await Promise.race([this.#grow(needed), this.#end.promise]);
      if (limit === null) continue;
      const wait = limit.held || waits ? limit.retryAfterMs : null;
      if (wait === null || now() + wait > waitsUntil) {
        const field = LIMIT_FIELDS[limit.kind as keyof typeof LIMIT_FIELDS];
        return isEndUser(limit.subject) ? `user_${field}` : field;
      }
      await Promise.race([pause(wait), this.#end.promise]);
    }
    return null;
  }

  /** Reserves nothing more, and waits no longer. */
  end(): void {
    this.#ended = true;
    this.#end.resolve(null);
  }

  #grow(used: number): Promise<ExceededLimit | null> {
    this.#growing ??= this.#reserve(used).finally(() => {
      this.#growing = null;
    });
    return this.#growing;
  }

  async #reserve(used: number): Promise<ExceededLimit | null> {
    const part = Math.min(MAX_PART, Math.max(FIRST_PART, used));
    const { prompt, most } = this.#tokens;
    const tokens = Math.min(most, this.#usable + part);
    const completionTokens = Math.max(0, tokens - prompt);
    const money = costOf(this.#options.price, { ...this.#prompt, completionTokens });
    const total = { tokens, money };
    const reserved = this.#reserved;
    const here = this.#options.growHere(eachOf((name) => Math.max(0, total[name] - reserved[name])));
    if (here.tokens > 0 || here.money > 0) {
      this.#raise(eachOf((name) => this.#reserved[name] + here[name]));
      return null;
    }
    const result = await this.#askHome(total);
    if (!result.admitted) {
      if (typeof result.refusal === 'string') throw this.#options.errorOf(result.refusal);
      return result.refusal;
    }
    const { tokens: reservedTokens = 0, money: reservedMoney = 0 } = result;
    this.#raise({ tokens: reservedTokens, money: reservedMoney });
    return null;
  }

  async #askHome(total: Spend): Promise<ReservationResult> {
    for (const pauseMs of RETRY_MS) {
      const result = await this.#options.growAtHome(total).catch(() => null);
      if (result !== null) return result;
      if (this.#ended) break;
      await this.#options.pause(pauseMs);
    }
    throw unchecked();
  }
}
