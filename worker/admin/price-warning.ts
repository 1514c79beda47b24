import type { RequestContext } from '../http/request-context.ts';
import { readPrices } from '../prices/price-store.ts';

const MAX_NAMED = 5;
/** The change is stored already, so the response does not wait for a slow upstream. */
const LISTED_WITHIN_MS = 2_000;

/**
 * Returns a text if limits of cost are set, but some served models have no price, so that requests to them go
 * on for free; undefined otherwise. Never fails.
 * @param limits by their names in the API
 */
export async function priceWarning(
  limits: Readonly<Record<string, unknown>> | undefined,
  { env, now, prices, catalogue }: RequestContext,
): Promise<string | undefined> {
  const set = Object.entries(limits ?? {}).filter(([, limit]) => typeof limit === 'number');
  const names = set.map(([name]) => name).filter((name) => name.includes('micros'));
  if (names.length === 0) return undefined;
  try {
    const models = await (await catalogue).listed(AbortSignal.timeout(LISTED_WITHIN_MS));
    const read = (session: D1SessionConstraint) => readPrices(env.DB, now(), session);
    const current = await Promise.all(models.map(({ id }) => prices.current(id, read)));
    const free = models.filter((_, index) => current[index] === null).map(({ id }) => id);
    if (free.length === 0) return undefined;
    const shown = free.length > MAX_NAMED ? [...free.slice(0, MAX_NAMED), '…'] : free;
    return `${names.join(', ')}: requests to models without a price cost nothing and go on: ${shown.join(', ')}.`;
  } catch {
    return undefined;
  }
}
