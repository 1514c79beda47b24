import type { Usage } from '@continuo/shared/generation.ts';
import type { Spend } from '../env/limiter-protocol.ts';
import { affordable, costOf, type Price } from '../prices/price.ts';
import { spendOf } from '../usage/usage-record.ts';
import { eachOf } from './quota/budget.ts';
import { FIRST_PART, type RequestTokens } from './request-cost.ts';

/** The next part is reserved when fewer tokens are left. It may take a round trip to home. */
const AHEAD = FIRST_PART / 2;
/** Further parts are as large as what was used, up to this. */
const MAX_PART = 1_024;

/** Returns a number of tokens, the prompt's included, with the most that they cost. */
export const spendFor = (
  price: Price | null,
  promptTokens: number,
  tokens: number,
  cachedTokens = 0,
): Spend => {
  const completionTokens = Math.max(0, tokens - promptTokens);
  return { tokens, money: costOf(price, { promptTokens, cachedTokens, completionTokens }) };
};

/** What a running request has reserved, and the tokens that this suffices for. */
export class ReservedSpend {
  readonly #price: Price | null;
  #tokens: Pick<RequestTokens, 'prompt' | 'most'>;
  #cachedTokens = 0;
  #spend: Spend;
  #usable = 0;

  constructor(spend: Spend, tokens: Pick<RequestTokens, 'prompt' | 'most'>, price: Price | null) {
    this.#price = price;
    this.#tokens = tokens;
    this.#spend = spend;
    this.raise(spend);
  }

  get spend(): Spend {
    return this.#spend;
  }

  /** Tokens that the reserved tokens and the reserved money suffice for. */
  get usable(): number {
    return this.#usable;
  }

  /** At least so much is reserved. */
  raise(spend: Spend): void {
    this.#spend = eachOf((name) => Math.max(this.#spend[name], spend[name]));
    const { tokens, money } = this.#spend;
    const prompt = { promptTokens: this.#tokens.prompt, cachedTokens: this.#cachedTokens };
    this.#usable = Math.min(tokens, affordable(this.#price, money, prompt));
  }

  add(spend: Spend): void {
    this.raise(eachOf((name) => this.#spend[name] + spend[name]));
  }

  /** The prompts have been counted. Returns what they need, with the first part of the completion. */
  counted(known: RequestTokens): Spend {
    this.#tokens = known;
    return spendFor(this.#price, known.prompt, known.tokens);
  }

  /** So many prompt tokens were in the prefix cache: what they save pays for others. */
  cached(tokens: number): void {
    this.#cachedTokens = Math.min(tokens, this.#tokens.prompt);
    this.raise(this.#spend);
  }

  /** Returns whether the request may use so many tokens. Other servers' estimates may exceed the maximum. */
  covers(tokens: number): boolean {
    return Math.min(tokens, this.#tokens.most) <= this.#usable;
  }

  /** Returns whether to reserve the next part soon. */
  isLow(tokens: number): boolean {
    return !this.covers(tokens + AHEAD);
  }

  /** Returns the total with the next part. */
  withNextPart(used: number): Spend {
    const { prompt, most } = this.#tokens;
    const part = Math.min(MAX_PART, Math.max(FIRST_PART, used));
    return spendFor(this.#price, prompt, Math.min(most, this.#usable + part), this.#cachedTokens);
  }

  /** Returns what is missing to a total. */
  missing(total: Spend): Spend {
    return eachOf((name) => Math.max(0, total[name] - this.#spend[name]));
  }

  /** Returns what is left of it after a usage; negative if the usage was more. */
  unused(usage: Usage): Spend {
    const spent = spendOf(this.#price, usage);
    return eachOf((name) => this.#spend[name] - spent[name]);
  }
}
