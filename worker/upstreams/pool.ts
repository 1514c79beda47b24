import type { OriginModel, WirePrompt } from '../../shared/generation.ts';
import type { Settings } from '../env.ts';
import { OriginUpstream } from './origin.ts';
import type { Upstream } from './upstream.ts';

/** What the choice of an upstream may depend on: prefix caches are per tenant and prompt. */
export interface Affinity {
  readonly tenantId: string;
  readonly prompt: WirePrompt | null;
}

/** The models on offer and who serves them. */
export interface Catalogue {
  /** @throws ApiError 502, 503, 504 when no upstream can say */
  models(signal: AbortSignal): Promise<readonly OriginModel[]>;
  upstreamFor(model: OriginModel, affinity: Affinity): Upstream;
}

/** One origin, whose list of models is believed for a short time. */
export function createCatalogue(settings: Settings, now: () => number): Catalogue {
  const origin = new OriginUpstream({
    name: 'origin',
    url: settings.ORIGIN_URL,
    secret: settings.ORIGIN_SECRET,
    acceptTimeoutMs: settings.ACCEPT_TIMEOUT_MS,
    now,
  });
  let known: { readonly models: readonly OriginModel[]; readonly until: number } | null = null;
  return {
    async models(signal) {
      if (known === null || known.until <= now()) {
        known = { models: await origin.models(signal), until: now() + settings.MODELS_TTL_MS };
      }
      return known.models;
    },
    upstreamFor: () => origin,
  };
}
