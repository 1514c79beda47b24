import { setImmediate } from 'node:timers/promises';
import { prefixStoreRoom } from '../../../../origin/engine/kv/prefix-memory.ts';
import type { EngineReport, Submission } from '../../../../origin/engine/messages.ts';
import { Engine } from '../../../../origin/engine/runs/engine.ts';
import type { EngineOptions } from '../../../../origin/engine/runs/engine-options.ts';
import { compileProgram } from '../../../../origin/grammar/compile.ts';
import { PatternSet } from '../../../../origin/grammar/runtime/pattern-set.ts';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { SimdKernel } from '../../../../origin/sampling/kernel/simd-kernel.ts';
import type { TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';
import type { GenerationEvent } from '../../../../shared/generation.ts';
import { wireEvents } from './transcript.ts';
import { EOS, TOKEN_BYTES } from './vocabulary.ts';

const KERNEL = new SimdKernel();

const patternSets = new Map<string, PatternSet>();

/** Compiles a list of patterns as the engine sends it. Each list is compiled once. */
function patternSetOf(list: string): PatternSet {
  const known = patternSets.get(list) ?? new PatternSet(compileProgram(JSON.parse(list)));
  patternSets.set(list, known);
  return known;
}

/** Milliseconds of one step on the driver's clock. */
export const STEP_MS = 7;

/** Difference between Unix time and the engine's clock. */
export const UNIX_AHEAD = 987_654_321;

/** Steps an engine manually, with a fake clock, and collects its reports. */
export class Driver {
  readonly engine: Engine;
  readonly events = new Map<string, GenerationEvent[]>();
  readonly reports: EngineReport[] = [];
  /** Retry-after of the refused requests, in milliseconds. */
  readonly refused = new Map<string, number>();
  now = 1_000_000;
  readonly #submissions = new Map<string, Submission>();
  readonly #tokenBytes: TokenBytes;
  /** Whether requests wait for a disk, or for patterns to be compiled. */
  #preparesRequests: boolean;

  constructor(runner: ModelRunner, options: Partial<EngineOptions> = {}) {
    this.#preparesRequests = Boolean(options.disk);
    this.#tokenBytes = options.tokenBytes ?? TOKEN_BYTES;
    this.engine = new Engine({
      runner,
      kernel: KERNEL,
      tokenBytes: TOKEN_BYTES,
      eosIds: [EOS],
      compile: () => {
        throw new Error('no grammars here');
      },
      compilePatterns: (list) => Promise.resolve(patternSetOf(list)),
      maxWaiting: 10_000,
      now: () => this.now,
      unixNow: () => this.now + UNIX_AHEAD,
      report: (report) => this.#take(report),
      onWork: () => undefined,
      ...options,
    });
  }

  submit(submission: Submission): void {
    this.#submissions.set(submission.requestId, submission);
    this.#preparesRequests ||=
      submission.bannedPhrases?.some((phrase) => typeof phrase !== 'string') === true;
    this.engine.submit(submission);
  }

  /** Makes one step. @throws Error if an invariant is broken after it */
  async step(): Promise<void> {
    await this.engine.step();
    if (this.#awaitsPreparation) await setImmediate();
    this.now += STEP_MS;
    const broken = this.engine.violations();
    if (broken.length > 0) throw new Error(broken.join('; '));
  }

  async finish(maxSteps = 100_000): Promise<void> {
    for (let step = 0; !this.engine.idle || this.#awaitsPreparation; step++) {
      if (step === maxSteps) throw new Error(`the engine is not idle after ${maxSteps} steps`);
      await this.step();
    }
    this.engine.settle();
  }

  eventsOf(requestId: string): readonly GenerationEvent[] {
    return this.events.get(requestId) ?? [];
  }

  get #awaitsPreparation(): boolean {
    return this.#preparesRequests && this.engine.awaitsPreparation;
  }

  #take(report: EngineReport): void {
    this.reports.push(report);
    if (report.type === 'refused') this.refused.set(report.requestId, report.retryAfterMs);
    if (report.type !== 'step') return;
    for (const [requestId, events] of report.events) {
      const known = this.events.get(requestId) ?? [];
      known.push(...wireEvents(events, this.#submissions.get(requestId)!, this.#tokenBytes));
      this.events.set(requestId, known);
      const last = events.at(-1)?.type;
      if (last === 'done' || last === 'error') this.#submissions.delete(requestId);
    }
  }
}

/** Returns a budget of the prefix store for so many chunks, with a row of logits per eight. */
export function storeBytes({ shape, kvBytes, states }: ModelRunner, chunks: number): number {
  const { prefillChunk: chunk, vocabularySize } = shape;
  const roomOf = (budgetBytes: number) =>
    prefixStoreRoom({ chunk, kvBytes, stateBytes: states?.bytes ?? 0, vocabularySize, budgetBytes });
  const { chunkBytes, logitsBytes } = roomOf(0);
  let budgetBytes = chunks * chunkBytes;
  while (roomOf(budgetBytes).chunks < chunks) budgetBytes += Math.min(chunkBytes, logitsBytes);
  return budgetBytes;
}
