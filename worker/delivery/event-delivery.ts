import type { Channel, OutgoingEvent } from '@continuo/limits/usage/event-queue.ts';
import { sha256Hex } from '@continuo/shared/signing.ts';
import type { Env } from '../env/env.ts';
import type { Settings } from '../env/settings.ts';
import { readWebhook } from '../tenants/webhook-store.ts';
import { type Delivery, send, tenantSecret } from './delivery.ts';
import { targetProblem } from './target.ts';

/** Sends events of a tenant to its webhook or to billing, once. Returns whether they need not be repeated. */
export async function deliver(
  channel: Channel,
  events: readonly OutgoingEvent[],
  { env, settings, now }: { readonly env: Env; readonly settings: Settings; readonly now: number },
): Promise<boolean> {
  const delivery =
    channel === 'usage' ? await billingOf(events, settings) : await alertOf(events[0]!, settings, env);
  return delivery === null || (await send(delivery, now));
}

/** Returns null if the tenant has no webhook, so that its alerts are only shown. */
async function alertOf(
  { id, body }: OutgoingEvent,
  { WEBHOOK_SECRET: secret, WEBHOOK_SECRET_OLD: old, ENVIRONMENT }: Settings,
  { DB, PUBLIC_NETWORK }: Env,
): Promise<Delivery | null> {
  const { tenant } = (JSON.parse(body) as { readonly data: { readonly tenant: string } }).data;
  const url = await readWebhook(DB, tenant);
  if (url === null || secret === undefined) return null;
  const local = ENVIRONMENT === 'development';
  // An address that was set in development must not be used elsewhere.
  if (targetProblem(url, local) !== null) return null;
  const network = local ? undefined : PUBLIC_NETWORK;
  const secrets = await Promise.all(
    [secret, ...(old ? [old] : [])].map((value) => tenantSecret(value, tenant)),
  );
  return { id, url, contentType: 'application/json', body, secrets, network };
}

/** Returns null if billing is off. The id is that of these events: a repeated batch may have more. */
async function billingOf(
  events: readonly OutgoingEvent[],
  { BILLING_URL: url, BILLING_SECRET: secret, BILLING_SECRET_OLD: old, BILLING_TOKEN: token }: Settings,
): Promise<Delivery | null> {
  if (url === undefined) return null;
  const id = await sha256Hex(events.map((event) => event.id).join('\n'));
  const body = `[${events.map((event) => event.body).join(',')}]`;
  const secrets = [secret, old];
  return { id, url, secrets, token, contentType: 'application/cloudevents-batch+json', body };
}
