import type { EventOf, FinishReason } from '@continuo/shared/generation.ts';
import type { SequenceOutput } from '../text/sequence-output.ts';
import type { QueuedSequence } from './open-request.ts';

export interface Finish {
  readonly reason: FinishReason;
  readonly stopReason: string | number | null;
}

/** What the events of a sequence report beside its text. */
interface Progress {
  readonly completionTokens: number;
  /** Sum of the tokens' raw logprobs. */
  readonly score: number;
  /** Null as long as it goes on. */
  readonly finish: Finish | null;
}

/** Makes the events of a sequence, for each of its choices. */
export class SequenceEvents {
  readonly #queued: QueuedSequence;
  readonly #output: SequenceOutput;
  /** Time of the last event. */
  #sentAt = Number.NEGATIVE_INFINITY;
  /** Whether an event has had text. */
  #hasSentText = false;

  constructor(queued: QueuedSequence, output: SequenceOutput) {
    this.#queued = queued;
    this.#output = output;
  }

  /**
   * Returns the events that are due, including `finish`.
   * @param minIntervalMs least interval that the machine can afford; a longer one of the submission wins
   */
  take(progress: Progress, now: number, minIntervalMs: number): EventOf<'token' | 'finish'>[] {
    const { completionTokens, finish } = progress;
    if (finish === null && !this.#isDue(now, minIntervalMs)) return [];
    this.#sentAt = now;
    this.#hasSentText ||= this.#output.hasText;
    const { request, promptIndex, firstChoice, choices } = this.#queued;
    const first = promptIndex * request.submission.choices + firstChoice;
    const tokens = this.#output.take(first, completionTokens, finish === null);
    const events: EventOf<'token' | 'finish'>[] = [];
    for (let choice = first; choice < first + choices; choice++) {
      for (const event of tokens) events.push({ ...event, choice });
      if (finish !== null) events.push(this.#finishEvent(choice, finish, progress));
    }
    return events;
  }

  /** Intervals are counted from the clock's zero, so that all sequences send in the same steps. */
  #isDue(now: number, minIntervalMs: number): boolean {
    const { eventIntervalMs } = this.#queued.request.submission;
    if (eventIntervalMs === 0) return true;
    // The first token may be a part of a character, whose rest must not wait.
    if (!this.#hasSentText && this.#output.hasText) return true;
    const interval = Math.max(eventIntervalMs, minIntervalMs);
    return Math.floor(now / interval) > Math.floor(this.#sentAt / interval);
  }

  #finishEvent(choice: number, finish: Finish, { completionTokens, score }: Progress): EventOf<'finish'> {
    const event: EventOf<'finish'> = { type: 'finish', choice, ...finish, completionTokens };
    if (this.#queued.request.submission.scores) event.score = score;
    return event;
  }
}
