import type { GenerationEvent } from '../../shared/generation.ts';
import type { EngineReport, EngineStatus, StepReport } from './messages.ts';

/** Step reports without any event wait until so many have come together. */
const MOST_REPORTS = 32;

/** Gathers what one step has to say, so that it leaves as one message. */
export class Outbox {
  #events = new Map<string, GenerationEvent[]>();
  #reports: StepReport[] = [];

  add(requestId: string, ...events: readonly GenerationEvent[]): void {
    if (events.length === 0) return;
    const known = this.#events.get(requestId);
    if (known === undefined) this.#events.set(requestId, [...events]);
    else known.push(...events);
  }

  addReport(report: StepReport): void {
    this.#reports.push(report);
  }

  /** Nobody listens to this request any more. */
  drop(requestId: string): void {
    this.#events.delete(requestId);
  }

  /** The message to send now, or null when it can wait. */
  take(status: EngineStatus, urgent: boolean): EngineReport | null {
    if (this.#events.size === 0 && !urgent && this.#reports.length < MOST_REPORTS) return null;
    const message: EngineReport = { type: 'step', events: [...this.#events], reports: this.#reports, status };
    if (this.#events.size > 0) this.#events = new Map();
    this.#reports = [];
    return message;
  }
}
