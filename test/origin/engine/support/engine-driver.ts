import { Engine, type EngineOptions } from '../../../../origin/engine/engine.ts';
import type { EngineReport, Submission } from '../../../../origin/engine/messages.ts';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import type { GenerationEvent } from '../../../../shared/generation.ts';
import { EOS, TOKEN_BYTES } from './vocabulary.ts';

/** Milliseconds one step takes on the driver's clock. */
export const STEP_MS = 7;

/** Unix time and the engine's clock have nothing to do with each other. */
export const UNIX_AHEAD = 987_654_321;

/** An engine stepped by hand, on a clock that moves by hand; collects everything it says. */
export class Driver {
  readonly engine: Engine;
  readonly events = new Map<string, GenerationEvent[]>();
  readonly reports: EngineReport[] = [];
  /** Requests that have been refused, with their retry-after. */
  readonly refused = new Map<string, number>();
  now = 1_000_000;

  constructor(runner: ModelRunner, options: Partial<EngineOptions> = {}) {
    this.engine = new Engine({
      runner,
      vocabulary: { tokenBytes: TOKEN_BYTES, encode: () => [] },
      eosIds: [EOS],
      compile: () => {
        throw new Error('no grammars here');
      },
      maxWaiting: 10_000,
      now: () => this.now,
      unixNow: () => this.now + UNIX_AHEAD,
      report: (report) => this.#take(report),
      onWork: () => undefined,
      ...options,
    });
  }

  submit(submission: Submission): void {
    this.engine.submit(submission);
  }

  /** One step, after which the engine's books must add up. */
  async step(): Promise<void> {
    await this.engine.step();
    this.now += STEP_MS;
    const broken = this.engine.violations();
    if (broken.length > 0) throw new Error(broken.join('; '));
  }

  async finish(mostSteps = 100_000): Promise<void> {
    for (let step = 0; !this.engine.idle; step++) {
      if (step === mostSteps) throw new Error('the engine does not come to an end');
      await this.step();
    }
    this.engine.settle();
  }

  eventsOf(requestId: string): readonly GenerationEvent[] {
    return this.events.get(requestId) ?? [];
  }

  #take(report: EngineReport): void {
    this.reports.push(report);
    if (report.type === 'refused') this.refused.set(report.requestId, report.retryAfterMs);
    if (report.type !== 'step') return;
    for (const [requestId, events] of report.events) {
      const known = this.events.get(requestId) ?? [];
      known.push(...events);
      this.events.set(requestId, known);
    }
  }
}
