import { backOff } from '@continuo/shared/retry.ts';
import { Table } from './object-tables.ts';

/** `alert`: about a limit, to the tenant's webhook. `usage`: a billed request, to the operator. */
export type Channel = 'alert' | 'usage';

export interface OutgoingEvent {
  /** Increases from event to event. */
  readonly position: number;
  /** Stays the same when the event is sent again. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
}

/** An event that the endpoint has refused too often. */
export interface DeadEvent {
  readonly id: string;
  readonly channel: Channel;
  readonly body: string;
}

/** Where the events of a channel are: in the rows from which they come. */
export interface EventSource {
  readonly last: number;
  /** Returns the oldest events after a position. */
  after(position: number, limit: number): OutgoingEvent[];
}

/** Positions after the first and up to the second number. */
export type Positions = readonly [after: number, last: number];

/** Plain data, stored as JSON. */
export interface QueueState {
  /** The endpoint has all events up to this position, or has refused them; null = the channel is off. */
  readonly position: number | null;
  /** Failed attempts for the next events. */
  readonly attempts: number;
  /** Position of the last event of the first of these attempts. */
  readonly tried: number;
  /** Unix milliseconds of the next attempt. */
  readonly dueAt: number;
  /** Events that were refused too often. */
  readonly refused: readonly Refused[];
}

interface Refused {
  readonly positions: Positions;
  /** They are sent again, before all others. */
  readonly isReplayed: boolean;
}

export const FIRST_STATE = { position: 0, attempts: 0, tried: 0, dueAt: 0, refused: [] } as const;

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 3_600_000;
/** With doubling pauses up to an hour, the last attempt is about nine hours after the first. */
const MAX_ATTEMPTS = 20;

/**
 * How far the events of one tenant have been delivered, in its object's database. A channel sends in order:
 * an event waits until those before it have been taken, or have failed for good.
 */
export class EventQueue {
  readonly channel: Channel;
  readonly #table: Table<'queues'>;
  readonly #source: EventSource;
  #state: QueueState;

  /**
   * @param isOn if not, nothing is sent. What occurs until the channel is on again is not sent later
   * @param first the state of a new queue
   */
  constructor(sql: SqlStorage, channel: Channel, source: EventSource, isOn: boolean, first: QueueState) {
    this.#table = new Table(sql, 'queues');
    this.channel = channel;
    this.#source = source;
    const [row] = this.#table.rows('WHERE channel = ?', channel);
    this.#state = row ? (JSON.parse(row.state) as QueueState) : first;
    const isChanged = isOn === (this.#state.position === null);
    // From the first start on: a later one could not tell which events are new.
    if (!row || isChanged) this.#set(isChanged ? { position: isOn ? source.last : null } : {});
  }

  #set(changes: Partial<QueueState>): void {
    this.#state = { ...this.#state, ...changes };
    this.#table.put({ channel: this.channel, state: JSON.stringify(this.#state) });
  }

  /** What the endpoint does not have, refused events included: its rows must be kept. */
  get undelivered(): readonly Positions[] {
    const { position, refused } = this.#state;
    const open: Positions[] = position === null ? [] : [[position, Number.MAX_SAFE_INTEGER]];
    return [...refused.map(({ positions }) => positions), ...open];
  }

  /** Whether events wait to be sent. */
  get isWaiting(): boolean {
    return this.#next() !== null;
  }

  /** Unix milliseconds at which events must be sent, not before now; null = none waits. */
  nextDue(now: number): number | null {
    return this.isWaiting ? Math.max(now, this.#state.dueAt) : null;
  }

  #next(): Positions | null {
    const { position, refused } = this.#state;
    const replayed = refused.find(({ isReplayed }) => isReplayed);
    if (replayed) return replayed.positions;
    const { last } = this.#source;
    return position === null || position >= last ? null : [position, last];
  }

  /** Returns the oldest events, if they are due. */
  due(limit: number, now: number): OutgoingEvent[] {
    if (this.#state.dueAt > now) return [];
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const events = this.#eventsIn(next, limit);
      if (events.length > 0) return events;
      // A full object has deleted their rows.
      this.#advance(next[1]);
    }
    return [];
  }

  #eventsIn([after, last]: Positions, limit: number): OutgoingEvent[] {
    return this.#source.after(after, limit).filter(({ position }) => position <= last);
  }

  taken(events: readonly OutgoingEvent[]): void {
    this.#advance(events.at(-1)!.position);
  }

  /** The endpoint has everything up to this position that was to be sent. */
  #advance(to: number): void {
    const replayed = this.#replayed(to);
    const done = { attempts: 0, dueAt: 0 };
    if (!replayed) {
      this.#set({ ...done, position: to });
      return;
    }
    const [, last] = replayed.positions;
    const rest = to < last ? [{ ...replayed, positions: [to, last] as const }] : [];
    this.#set({
      ...done,
      refused: this.#state.refused.flatMap((refusal) => (refusal === replayed ? rest : [refusal])),
    });
  }

  #replayed(position: number): Refused | undefined {
    return this.#state.refused.find(
      ({ isReplayed, positions: [after, last] }) => isReplayed && after < position && position <= last,
    );
  }

  /** Sends the events again after a pause. After too many attempts, sets them aside and goes on. */
  failed(events: readonly OutgoingEvent[], now: number): void {
    const { attempts, position, refused } = this.#state;
    const last = events.at(-1)!.position;
    const tried = attempts === 0 ? last : this.#state.tried;
    if (attempts + 1 < MAX_ATTEMPTS) {
      const dueAt = now + backOff(attempts + 1, FIRST_PAUSE_MS, MAX_PAUSE_MS);
      this.#set({ attempts: attempts + 1, tried, dueAt });
      return;
    }
    const replayed = this.#replayed(last);
    const again = { attempts: 0, dueAt: now };
    if (replayed)
      this.#set({
        ...again,
        refused: refused.map((refusal) =>
          refusal === replayed ? { ...refusal, isReplayed: false } : refusal,
        ),
      });
    else {
      const aside: Refused = { positions: [position ?? 0, tried], isReplayed: false };
      this.#set({ ...again, position: tried, refused: [...refused, aside] });
    }
  }

  /** Returns all events that were set aside, oldest first. */
  dead(): DeadEvent[] {
    return this.#state.refused
      .filter(({ isReplayed }) => !isReplayed)
      .flatMap(({ positions }) => this.#eventsIn(positions, positions[1] - positions[0]))
      .map(({ id, body }) => ({ id, channel: this.channel, body }));
  }

  /** Sends all events again that were set aside. Returns their number. */
  replay(): number {
    const { length } = this.dead();
    const refused = this.#state.refused.map((refusal) => ({ ...refusal, isReplayed: true }));
    if (length > 0) this.#set({ refused, attempts: 0, dueAt: 0 });
    return length;
  }
}
