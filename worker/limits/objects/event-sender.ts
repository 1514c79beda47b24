import { sha256Hex } from '@continuo/shared/signing.ts';
import { type Delivery, send, tenantSecret } from '../../delivery/delivery.ts';
import type { Channel, DeadEvent, DeliveryCursor, OutgoingEvent } from '../../delivery/delivery-cursor.ts';
import { targetProblem } from '../../delivery/target.ts';
import type { Env } from '../../env/env.ts';
import type { Settings } from '../../env/settings.ts';
import { readWebhook } from '../../tenants/webhook-store.ts';

const BATCH: Record<Channel, number> = { alert: 1, usage: 100 };

interface Options {
  readonly env: Env;
  readonly settings: Settings;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Called when events have been taken. */
  readonly onTaken: (events: readonly OutgoingEvent[]) => void;
}

/** Sends a tenant's alerts to its webhook, and its usage records to billing, at least once each. */
export class EventSender {
  readonly #cursors: readonly DeliveryCursor[];
  readonly #options: Options;
  #isSending = false;

  constructor(cursors: readonly DeliveryCursor[], options: Options) {
    this.#cursors = cursors;
    this.#options = options;
  }

  /** Whether events wait, or are being sent. */
  get isWaiting(): boolean {
    return this.#cursors.some(({ isWaiting }) => isWaiting);
  }

  /** Unix milliseconds at which events must be sent; null = none waits, or they are being sent. */
  nextDue(): number | null {
    if (this.#isSending) return null;
    const now = this.#options.now();
    const due = this.#cursors.flatMap((cursor) => cursor.nextDue(now) ?? []);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Sends what is due. Never fails. */
  async send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    await Promise.all(this.#cursors.map((cursor) => this.#sendAll(cursor)));
    this.#isSending = false;
  }

  async #sendAll(cursor: DeliveryCursor): Promise<void> {
    const { now, onTaken } = this.#options;
    for (;;) {
      const events = cursor.due(BATCH[cursor.channel], now());
      if (events.length === 0) return;
      if (await this.#deliver(cursor.channel, events).catch(() => false)) {
        cursor.taken(events);
        onTaken(events);
      } else cursor.failed(events, now());
    }
  }

  async #deliver(channel: Channel, events: readonly OutgoingEvent[]): Promise<boolean> {
    const { settings, env, now } = this.#options;
    const delivery =
      channel === 'usage' ? await billingOf(events, settings) : await alertOf(events[0]!, settings, env);
    return delivery === null || (await send(delivery, now()));
  }

  /** Returns the events that were refused too often, by channel, oldest first, after the one with this id. */
  dead(limit: number, after: string): DeadEvent[] {
    const all = this.#cursors.flatMap((cursor) => cursor.dead());
    const from = all.findIndex(({ id }) => id === after) + 1;
    return all.slice(from, from + limit);
  }

  /** Sends all of them again. Returns their number. */
  replay(): number {
    return this.#cursors.reduce((sum, cursor) => sum + cursor.replay(), 0);
  }
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
