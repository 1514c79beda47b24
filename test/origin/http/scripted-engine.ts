import type { EngineStatus, Submission } from '../../../origin/engine/messages.ts';
import type { SubmissionReply } from '../../../origin/engine/thread/engine-client.ts';
import type { EngineAccess } from '../../../origin/serving/load-model.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';

/** Fake engine below the HTTP server: the test sends its events and inspects its submissions and aborts. */
export class ScriptedEngine implements EngineAccess {
  readonly submissions: Submission[] = [];
  readonly aborted: string[] = [];
  status: EngineStatus = { running: 0, waiting: 0, healthy: true };
  lastFault: string | null = null;
  admission: SubmissionReply | Promise<SubmissionReply> = { admitted: true };
  /** Runs right after each admission. */
  script: (engine: ScriptedEngine, id: string) => void = (engine, id) => engine.finish(id);
  readonly #listeners = new Map<string, (events: readonly GenerationEvent[]) => void>();
  readonly #arrivals: (() => void)[] = [];

  async submit(
    submission: Submission,
    onEvents: (events: readonly GenerationEvent[]) => void,
  ): Promise<SubmissionReply> {
    this.submissions.push(submission);
    for (const arrive of this.#arrivals.splice(0)) arrive();
    const admission = await this.admission;
    if (admission.admitted) {
      this.#listeners.set(submission.requestId, onEvents);
      queueMicrotask(() => this.script(this, submission.requestId));
    }
    return admission;
  }

  abort(requestId: string): void {
    this.aborted.push(requestId);
    this.#listeners.delete(requestId);
    for (const arrive of this.#arrivals.splice(0)) arrive();
  }

  async stop(): Promise<void> {
    this.status = { running: 0, waiting: 0, healthy: false };
  }

  /** Resolves at the next submission or abort. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#arrivals.push(resolve));
  }

  say(id: string, ...events: GenerationEvent[]): void {
    this.#listeners.get(id)?.(events);
  }

  finish(id: string): void {
    this.say(
      id,
      { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 1 },
      { type: 'token', choice: 0, text: 'one', completionTokens: 1 },
      { type: 'token', choice: 0, text: ' two', completionTokens: 2 },
    );
    this.say(
      id,
      { type: 'finish', choice: 0, reason: 'length', stopReason: null, completionTokens: 2 },
      {
        type: 'done',
        usage: { promptTokens: 3, cachedTokens: 1, completionTokens: 2 },
        timings: { queueMs: 1, promptMs: 2, generationMs: 3 },
      },
    );
  }
}
