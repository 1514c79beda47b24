import { json } from 'node:stream/consumers';
import { serve } from '../../support/local-server.ts';

interface BillingEvent {
  readonly id: string;
  readonly subject: string;
  readonly data: { readonly cost_micros: number };
}

/** What a tenant has to pay. */
interface Bill {
  readonly events: number;
  /** Micro-units. */
  readonly micros: number;
}

/** A billing system: it takes usage events, and counts each id once. */
export interface BillingSystem {
  readonly url: string;
  of(tenant: string): Bill;
  stop(): Promise<void>;
}

export async function startBillingSystem(): Promise<BillingSystem> {
  const costs = new Map<string, Map<string, number>>();
  const { url, stop } = await serve(async (request, response) => {
    // A killed workerd breaks off.
    const events = (await json(request).catch(() => [])) as BillingEvent[];
    for (const { id, subject, data } of events) {
      const ofTenant = costs.get(subject) ?? new Map<string, number>();
      costs.set(subject, ofTenant.set(id, data.cost_micros));
    }
    response.writeHead(204).end();
  });
  return {
    url: `${url}/`,
    of(tenant) {
      const micros = [...(costs.get(tenant)?.values() ?? [])];
      return { events: micros.length, micros: micros.reduce((sum, cost) => sum + cost, 0) };
    },
    stop,
  };
}
