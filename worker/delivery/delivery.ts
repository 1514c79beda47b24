import { base64Of, bytesOfUnits } from '@continuo/shared/binary-text.ts';

/** Sends signed events to HTTP endpoints of others, as Standard Webhooks describe it. */

export interface Delivery {
  /** Stays the same when the event is sent again. */
  readonly id: string;
  readonly url: string;
  readonly contentType: string;
  readonly body: string;
  /** Each signs the body; without one, the event has no signature. */
  readonly secrets: readonly (string | undefined)[];
  /** Sent as a Bearer token, if the endpoint needs one. */
  readonly token?: string | undefined;
  /** Connects to the address; without it, any network is used. */
  readonly network?: Pick<Fetcher, 'fetch'> | undefined;
}

const TIMEOUT_MS = 10_000;

const encoder = new TextEncoder();

async function hmac(secret: Uint8Array, text: string): Promise<Uint8Array> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', secret, algorithm, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)));
}

/** Returns the secret of a tenant's webhook: it differs for each tenant, and no database holds it. */
export const tenantSecret = async (secret: string, tenantId: string): Promise<string> =>
  `whsec_${base64Of(await hmac(encoder.encode(secret), `webhook ${tenantId}`))}`;

/** Returns the bytes of a secret. One without the usual prefix is text. */
const secretBytes = (secret: string): Uint8Array =>
  secret.startsWith('whsec_') ? bytesOfUnits(atob(secret.slice('whsec_'.length))) : encoder.encode(secret);

/** Returns the signature of an event: `v1,` and the HMAC-SHA256 of id, Unix seconds and body. */
const signatureOf = async (
  { id, body }: Pick<Delivery, 'id' | 'body'>,
  secret: string,
  seconds: number,
): Promise<string> => `v1,${base64Of(await hmac(secretBytes(secret), `${id}.${seconds}.${body}`))}`;

/** Sends an event once. Returns whether the endpoint has taken it. Follows no redirect. Never fails. */
export async function send(delivery: Delivery, now: number): Promise<boolean> {
  const seconds = Math.floor(now / 1000);
  const { secrets, token, network = globalThis } = delivery;
  try {
    const given = secrets.filter((secret) => secret !== undefined);
    const signatures = await Promise.all(given.map((secret) => signatureOf(delivery, secret, seconds)));
    const response = await network.fetch(delivery.url, {
      method: 'POST',
      body: delivery.body,
      headers: {
        'content-type': delivery.contentType,
        'webhook-id': delivery.id,
        'webhook-timestamp': String(seconds),
        ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
