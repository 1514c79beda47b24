import type { Usage } from '@continuo/shared/generation.ts';

/** What the tokens of one request cost: micro-units of the currency per billion tokens, as integers. */
export interface Price {
  /** Of the price list. */
  readonly version: number;
  readonly prompt: number;
  /** Prompt tokens from the prefix cache. Never more than `prompt`. */
  readonly cached: number;
  readonly completion: number;
}

/** Prices are per million tokens and factors per thousand, so their product is per billion. */
const TOKENS = 1_000_000_000n;

/** Returns the cost of a usage in micro-units, rounded up once. Exact, because no sum is a float. */
export function costOf(price: Price | null, { promptTokens, cachedTokens, completionTokens }: Usage): number {
  if (price === null) return 0;
  const prompt = { promptTokens, cachedTokens: Math.min(cachedTokens, promptTokens) };
  const parts = promptCost(price, prompt) + BigInt(completionTokens) * BigInt(price.completion);
  return Number((parts + TOKENS - 1n) / TOKENS);
}

/** A prompt, as far as it is known: without more, nothing of it is in the prefix cache. */
interface PricedPrompt {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** How many tokens at a rate fit into what `money` leaves of a cost; Infinity if they cost nothing. */
function tokensFor(money: number, spent: bigint, rate: number): number {
  if (rate === 0) return Number.POSITIVE_INFINITY;
  const left = BigInt(money) * TOKENS - spent;
  return left < 0n ? 0 : Number(left / BigInt(rate));
}

const promptCost = (price: Price, { promptTokens, cachedTokens }: PricedPrompt): bigint =>
  BigInt(promptTokens - cachedTokens) * BigInt(price.prompt) + BigInt(cachedTokens) * BigInt(price.cached);

/** Returns the most tokens, the prompt's included, that this request can use for so much money. */
export function affordable(price: Price | null, money: number, prompt: PricedPrompt): number {
  if (price === null) return Number.POSITIVE_INFINITY;
  return prompt.promptTokens + tokensFor(money, promptCost(price, prompt), price.completion);
}

/** Returns the largest part of a usage that costs no more than `money`: all of the prompt first. */
export function within(price: Price | null, money: number, usage: Usage): Usage {
  if (price === null || costOf(price, usage) <= money) return usage;
  const promptTokens = Math.min(usage.promptTokens, tokensFor(money, 0n, price.prompt));
  const cachedTokens = Math.min(usage.cachedTokens, promptTokens);
  const prompt = promptCost(price, { promptTokens, cachedTokens });
  const completionTokens = Math.min(usage.completionTokens, tokensFor(money, prompt, price.completion));
  return { promptTokens, cachedTokens, completionTokens };
}

/**
 * A price as a part of a request's id. The object and origins keep the id, so its cost does not depend on the
 * reporter of its usage. Without a price, the part is `p`: ids of callers come later in the id, so they
 * cannot set one.
 */
export const priceName = (price: Price | null): string =>
  price === null
    ? 'p'
    : `p${[price.version, price.prompt, price.cached, price.completion].map((part) => part.toString(36)).join('-')}`;

/** Returns the price that `priceName` has written into a part of an id; null without one. */
export function namedPrice(part = ''): Price | null {
  if (!/^p[0-9a-z]+(-[0-9a-z]+){3}$/.test(part)) return null;
  const [version, prompt, cached, completion] = part
    .slice(1)
    .split('-')
    .map((part) => parseInt(part, 36));
  return { version: version!, prompt: prompt!, cached: cached!, completion: completion! };
}
