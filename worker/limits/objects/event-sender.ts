import type { Channel, DeadEvent, EventQueue, OutgoingEvent } from '../usage/event-queue.ts';
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
  readonly #queues: readonly EventQueue[];
  readonly #options: Options;
  #isSending = false;

  constructor(queues: readonly EventQueue[], options: Options) {
    this.#queues = queues;
    this.#options = options;
  }

  /** Whether events wait, or are being sent. */
  get isWaiting(): boolean {
    return this.#queues.some(({ isWaiting }) => isWaiting);
  }

  /** Unix milliseconds at which events must be sent; null = none waits, or they are being sent. */
  nextDue(): number | null {
    if (this.#isSending) return null;
    const now = this.#options.now();
    const due = this.#queues.flatMap((queue) => queue.nextDue(now) ?? []);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Sends what is due. Never fails. */
  async send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    await Promise.all(this.#queues.map((queue) => this.#sendAll(queue)));
    this.#isSending = false;
  }

  async #sendAll(queue: EventQueue): Promise<void> {
    const { now, deliver, onTaken } = this.#options;
    for (;;) {
      const events = queue.due(BATCH[queue.channel], now());
      if (events.length === 0) return;
      if (await deliver(queue.channel, events, now()).catch(() => false)) {
        queue.taken(events);
        onTaken(events);
      } else queue.failed(events, now());
    }
  }

  /** Returns the events that were refused too often, by channel, oldest first, after the one with this id. */
  dead(limit: number, after: string): DeadEvent[] {
    const all = this.#queues.flatMap((queue) => queue.dead());
    const from = all.findIndex(({ id }) => id === after) + 1;
    return all.slice(from, from + limit);
  }

  /** Sends all of them again. Returns their number. */
  replay(): number {
    return this.#queues.reduce((sum, queue) => sum + queue.replay(), 0);
  }
}
