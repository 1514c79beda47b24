import type { GenerationEvent } from '../shared/generation.ts';
import type { EngineStatus, Submission } from './engine/messages.ts';

export type Admission =
  | { readonly admitted: true }
  /** The queue is full. */
  | { readonly admitted: false; readonly retryAfterMs: number };

/** The engine as the HTTP half sees it; engine-client.ts is the real one. */
export interface EnginePort {
  readonly status: EngineStatus;
  /**
   * Events arrive in order and end with exactly one `done` or `error`, unless the request is aborted.
   * No event arrives before the promise has resolved.
   */
  submit(submission: Submission, onEvents: (events: readonly GenerationEvent[]) => void): Promise<Admission>;
  abort(requestId: string): void;
}
