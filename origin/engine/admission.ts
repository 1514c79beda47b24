import { toApiError } from '@continuo/shared/errors.ts';
import type { EventOf } from '@continuo/shared/generation.ts';
import type { PatternList } from '../grammar/compile.ts';
import type { CompiledGrammar } from '../grammar/constraint.ts';
import type { GrammarWork } from '../grammar/grammar-work.ts';
import type { PatternSet } from '../grammar/runtime/pattern-set.ts';
import type { EngineReport, Submission } from './messages.ts';
import { accountOf, type Preparation } from './open-request.ts';
import type { RunningSet } from './running-set.ts';

/** Finished requests that retry-after is computed from. */
const THROUGHPUT_WINDOW = 64;

const NOTHING_PREPARED: Preparation = { grammar: null, stopPatterns: null, bannedPatterns: null, images: [] };

/** Returns whether a submission can be found invalid only after its admission, when it is compiled. */
export const needsCompilation = ({ constraint, stopRegex, bannedPhrases = [] }: Submission): boolean =>
  constraint !== null || Boolean(stopRegex) || bannedPhrases.some((phrase) => typeof phrase !== 'string');

interface Preparing extends Pick<Submission, 'tenantId' | 'flex'> {
  readonly controller: AbortController;
}

export interface AdmissionOptions {
  readonly running: RunningSet;
  /**
   * @param constraint a WireConstraint as JSON
   * @throws ApiError if the grammar is not valid
   */
  readonly compile: (constraint: string, tenantId: string) => CompiledGrammar | Promise<CompiledGrammar>;
  /**
   * @param list a PatternList as JSON
   * @throws ApiError if a pattern is not valid
   */
  readonly compilePatterns?: (list: string, tenantId: string) => Promise<PatternSet>;
  readonly grammarWork: GrammarWork;
  /** Encodes a submission's images; absent if the model takes none. @throws ApiError if the model fails */
  readonly encodeImages?: (submission: Submission, signal: AbortSignal) => Promise<Preparation['images']>;
  /** Reads stored prefixes of the prompts from the disk; null or absent if there are none. Never rejects. */
  readonly loadPrefixes?: (submission: Submission, signal: AbortSignal) => Promise<void> | null;
  /** Milliseconds, with fractions, of a monotonic clock. */
  readonly now: () => number;
  readonly report: (report: EngineReport) => void;
  /** Charges an account with milliseconds of the engine's time. */
  readonly charge: (account: string, ms: number) => void;
  /** Opens the request of a prepared submission. */
  readonly open: (submission: Submission, preparation: Preparation, submittedAt: number) => void;
  /** Ends a submission whose preparation failed; the event is its only one. */
  readonly fail: (requestId: string, error: EventOf<'error'>) => void;
}

/** Admits or refuses submissions, then prepares the grammars, images and stored prefixes of those it admits. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #throughput = new Throughput(THROUGHPUT_WINDOW);
  /** By request id. */
  readonly #preparing = new Map<string, Preparing>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Requests whose grammar, images or stored prefixes are being prepared. */
  get preparing(): number {
    return this.#preparing.size;
  }

  /** Reports `admitted` or `refused` before any event of the request. Its account pays for the time. */
  submit(submission: Submission): void {
    const startedAt = this.#options.now();
    this.#admit(submission);
    this.#options.charge(accountOf(submission), this.#options.now() - startedAt);
  }

  #admit(submission: Submission): void {
    const { running, now, report, open, loadPrefixes } = this.#options;
    const { requestId, prompts } = submission;
    const submittedAt = now();
    if (running.hasFreeSlot) this.#throughput.resume(submittedAt);
    if (!running.hasRoom(submission, this.#preparingByTenant(submission.flex))) {
      report({ type: 'refused', requestId, retryAfterMs: this.#throughput.waitForNext(submittedAt) });
      return;
    }
    report({ type: 'admitted', requestId });
    const controller = new AbortController();
    const prefixes = loadPrefixes?.(submission, controller.signal) ?? null;
    const hasImages = prompts.some(({ images }) => images !== undefined);
    if (needsCompilation(submission) || hasImages || prefixes !== null) {
      void this.#prepare(submission, submittedAt, controller, prefixes);
    } else open(submission, NOTHING_PREPARED, submittedAt);
  }

  /** Stops preparing a submission. */
  abort(requestId: string): void {
    this.#preparing.get(requestId)?.controller.abort();
    this.#preparing.delete(requestId);
  }

  /** Notes that a request has finished. */
  recordFinish(now: number): void {
    this.#throughput.recordFinish(now);
  }

  #preparingByTenant(flex: boolean): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { tenantId, flex: isFlex } of this.#preparing.values()) {
      if (isFlex === flex) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1);
    }
    return counts;
  }

  async #prepare(
    submission: Submission,
    submittedAt: number,
    controller: AbortController,
    prefixes: Promise<void> | null,
  ): Promise<void> {
    const { encodeImages, open, fail } = this.#options;
    const { requestId, tenantId, flex } = submission;
    this.#preparing.set(requestId, { controller, tenantId, flex });
    try {
      const grammar = await this.#compile(submission);
      const stopPatterns = await this.#compilePatterns(submission, 'stop_regex', submission.stopRegex ?? []);
      const bannedRegex = (submission.bannedPhrases ?? []).map((phrase) =>
        typeof phrase === 'string' ? null : phrase.regex,
      );
      const bannedPatterns = await this.#compilePatterns(submission, 'banned_phrases', bannedRegex);
      if (needsCompilation(submission) && this.#preparing.has(requestId)) {
        this.#options.report({
          type: 'compiled',
          requestId,
          ignoredKeywords: grammar?.ignoredKeywords ?? [],
        });
      }
      const images = (await encodeImages?.(submission, controller.signal)) ?? [];
      await prefixes;
      if (this.#preparing.delete(requestId))
        open(submission, { grammar, stopPatterns, bannedPatterns, images }, submittedAt);
    } catch (thrown) {
      const { code, message, param } = toApiError(thrown);
      if (!this.#preparing.delete(requestId)) return;
      fail(requestId, { type: 'error', code, message, param, retryable: code === 'upstream_error' });
    }
  }

  async #compile(submission: Submission): Promise<CompiledGrammar | null> {
    const { requestId, tenantId, constraint } = submission;
    if (constraint === null) return null;
    const { compile, grammarWork, charge, now } = this.#options;
    const grammar = await compile(constraint, tenantId);
    while (grammarWork.isSpent(tenantId)) await grammarWork.nextStep();
    // Refuses a grammar whose first mask exceeds the work budget.
    if (this.#preparing.has(requestId)) {
      const startedAt = now();
      grammar.start((units) => grammarWork.spend(tenantId, units)).mask();
      charge(accountOf(submission), now() - startedAt);
    }
    return grammar;
  }

  /** @param value the patterns; null = an entry of the field that is not one */
  async #compilePatterns(
    { tenantId }: Submission,
    field: string,
    value: PatternList['value'],
  ): Promise<PatternSet | null> {
    if (value.every((source) => source === null)) return null;
    const list: PatternList = { type: 'patterns', field, value };
    return (await this.#options.compilePatterns?.(JSON.stringify(list), tenantId)) ?? null;
  }
}

/** Returned while no request has finished. */
const DEFAULT_WAIT_MS = 1_000;
const MIN_WAIT_MS = 100;
/** Clients do not wait longer. */
const MAX_WAIT_MS = 60_000;

/** Measures how fast requests finish, to compute retry-after. */
export class Throughput {
  /** Ring of the latest finish times. */
  readonly #finishedAt: Float64Array;
  #count = 0;

  /** @param window number of finish times to keep */
  constructor(window: number) {
    this.#finishedAt = new Float64Array(window);
  }

  /** @param now milliseconds */
  recordFinish(now: number): void {
    this.#finishedAt[this.#count % this.#finishedAt.length] = now;
    this.#count++;
  }

  /** Excludes the time since the last finish, because the engine had free slots. */
  resume(now: number): void {
    if (this.#count === 0) return;
    const idle = now - this.#finishedAt[(this.#count - 1) % this.#finishedAt.length]!;
    for (let at = 0; at < this.#finishedAt.length; at++) this.#finishedAt[at]! += idle;
  }

  /** Estimates the milliseconds from one finish to the next; between 100 and 60,000. */
  waitForNext(now: number): number {
    const known = Math.min(this.#count, this.#finishedAt.length);
    if (known === 0) return DEFAULT_WAIT_MS;
    const oldest = this.#finishedAt[(this.#count - known) % this.#finishedAt.length]!;
    return Math.round(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, (now - oldest) / known)));
  }
}
