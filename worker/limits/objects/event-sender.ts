import type { Channel, DeadEvent, DeliveryCursor, OutgoingEvent } from '../usage/delivery-cursor.ts';
import type { LimiterPorts } from './limiter-ports.ts';

const BATCH: Record<Channel, number> = { alert: 1, usage: 100 };

interface Options {
  readonly deliver: LimiterPorts['deliver'];
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
    const { now, deliver, onTaken } = this.#options;
    for (;;) {
      const events = cursor.due(BATCH[cursor.channel], now());
      if (events.length === 0) return;
      if (await deliver(cursor.channel, events, now()).catch(() => false)) {
        cursor.taken(events);
        onTaken(events);
      } else cursor.failed(events, now());
    }
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
