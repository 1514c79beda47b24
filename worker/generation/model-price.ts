import type { Price } from '@continuo/limits/usage/price.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { ServiceTier } from '../prices/price-list.ts';
import { readPrices } from '../prices/price-store.ts';

/** Returns what a model's tokens cost for a request that begins now. It stays so until the request ends. */
export const priceOf = (
  { id }: OriginModel,
  tier: ServiceTier,
  { prices, env, now }: RequestContext,
): Promise<Price | null> => prices.of(id, tier, (session) => readPrices(env.DB, now(), session));

/** Returns a model's valid price as /v1/models shows it; null = its tokens cost nothing. */
export async function listedPrice({ id }: OriginModel, { prices, env, now }: RequestContext) {
  const price = await prices.current(id, (session) => readPrices(env.DB, now(), session));
  return (
    price && {
      version: String(price.version),
      prompt_micros: price.prompt,
      cached_prompt_micros: price.cachedPrompt,
      completion_micros: price.completion,
      flex_permille: price.flexFactor,
      batch_permille: price.batchFactor,
    }
  );
}
