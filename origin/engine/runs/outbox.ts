import type { EngineEvent, EngineReport, EngineStatus, StepReport } from '../messages.ts';

/** Step reports without events are sent when this many have been collected. */
const MAX_REPORTS = 32;

/** Collects the events of one step, so that they leave the engine thread as one message. */
export class Outbox {
  #events = new Map<string, EngineEvent[]>();
  #reports: StepReport[] = [];

  add(requestId: string, ...events: readonly EngineEvent[]): void {
    if (events.length === 0) return;
    const earlier = this.#events.get(requestId);
    if (earlier === undefined) this.#events.set(requestId, [...events]);
    else earlier.push(...events);
  }

  addReport(report: StepReport): void {
    this.#reports.push(report);
  }

  /** Discards the events of an aborted request. */
  drop(requestId: string): void {
    this.#events.delete(requestId);
  }

  /** Returns the message to send now; null if it can wait. */
  take(statusOf: () => EngineStatus, urgent: boolean): EngineReport | null {
    if (this.#events.size === 0 && !urgent && this.#reports.length < MAX_REPORTS) return null;
    const status = statusOf();
    const message: EngineReport = { type: 'step', events: [...this.#events], reports: this.#reports, status };
    if (this.#events.size > 0) this.#events = new Map();
    this.#reports = [];
    return message;
  }
}
