import type { PatternList } from '@continuo/grammar/compile.ts';
import type { GrammarWork } from '@continuo/grammar/grammar-work.ts';
import { type CompiledGrammar, UnfinishedWork } from '@continuo/grammar/runtime/constraint.ts';
import type { PatternSet } from '@continuo/grammar/runtime/pattern-set.ts';
import { needsCompilation } from '@continuo/shared/generation.ts';
import { nullOn } from '@continuo/shared/null-on.ts';
import type { Submission } from '../messages.ts';
import type { Throughput } from '../scheduling/throughput.ts';
import { accountOf, OpenRequest, type Preparation } from '../sequences/open-request.ts';
import type { PrefixCache } from '../state/prefix-cache.ts';
import type { Scheduler } from '../state/scheduler.ts';
import type { EngineOptions } from './engine-options.ts';
import type { Requests } from './requests.ts';
import type { RunClock } from './run-clock.ts';

const NOTHING_PREPARED: Preparation = { grammar: null, stopPatterns: null, bannedPatterns: null, images: [] };

/** The parts of the engine that admission works with. */
interface AdmissionParts {
  readonly scheduler: Scheduler;
  readonly prefixes: PrefixCache;
  readonly requests: Requests;
  readonly clock: RunClock;
  readonly grammarWork: GrammarWork;
  readonly throughput: Throughput;
}

interface Preparing {
  readonly submission: Submission;
  readonly controller: AbortController;
}

/**
 * Admits or refuses submissions, then prepares the grammars, images and stored prefixes of those it admits.
 */
export class Admission {
  readonly #options: EngineOptions;
  readonly #parts: AdmissionParts;
  /** By request id. */
  readonly #preparing = new Map<string, Preparing>();

  constructor(options: EngineOptions, parts: AdmissionParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Requests whose grammar, images or stored prefixes are being prepared. */
  get preparing(): number {
    return this.#preparing.size;
  }

  /** Reports `admitted` or `refused` before any event of the request. Its account pays for the time. */
  submit(submission: Submission): void {
    const submittedAt = this.#options.now();
    this.#admit(submission, submittedAt);
    this.#parts.clock.charge(accountOf(submission), this.#options.now() - submittedAt);
  }

  #admit(submission: Submission, submittedAt: number): void {
    const { report } = this.#options;
    const { scheduler, prefixes, throughput } = this.#parts;
    const { requestId, prompts, flex } = submission;
    if (scheduler.hasFreeSlot) throughput.resume(submittedAt);
    if (!scheduler.hasRoom(submission, this.#preparingByTenant(flex))) {
      report({ type: 'refused', requestId, retryAfterMs: throughput.waitForNext(submittedAt) });
      return;
    }
    report({ type: 'admitted', requestId });
    const controller = new AbortController();
    const loaded = prefixes.load(submission, controller.signal);
    const hasImages = prompts.some(({ images }) => images !== undefined);
    if (needsCompilation(submission) || hasImages || loaded !== null) {
      this.#preparing.set(requestId, { submission, controller });
      void this.#prepare(submission, submittedAt, controller.signal, loaded);
    } else this.#open(submission, NOTHING_PREPARED, submittedAt);
  }

  /** Stops preparing a submission. */
  abort(requestId: string): void {
    this.#preparing.get(requestId)?.controller.abort();
    this.#preparing.delete(requestId);
  }

  #open(submission: Submission, preparation: Preparation, submittedAt: number): void {
    const { eosIds, now, unixNow, onWork } = this.#options;
    const deadline = now() + submission.deadline - unixNow();
    const request = new OpenRequest(submission, { ...preparation, eosIds, submittedAt, deadline });
    this.#parts.requests.open(request);
    const { clock, scheduler } = this.#parts;
    clock.stopFor(request.account, request.weight, () => scheduler.isShortNext(request));
    onWork();
  }

  #preparingByTenant(flex: boolean): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { submission } of this.#preparing.values()) {
      const { tenantId } = submission;
      if (submission.flex === flex) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1);
    }
    return counts;
  }

  /** @param loaded resolves when stored prefixes have been read */
  async #prepare(
    submission: Submission,
    submittedAt: number,
    signal: AbortSignal,
    loaded: Promise<void> | null,
  ): Promise<void> {
    const { encodeImages, report, onWork } = this.#options;
    const { requestId, stopRegex = [], bannedPhrases = [] } = submission;
    try {
      const grammar = await this.#compile(submission);
      const stopPatterns = await this.#compilePatterns(submission, 'stop_regex', stopRegex);
      const bannedRegex = bannedPhrases.map((phrase) => (typeof phrase === 'string' ? null : phrase.regex));
      const bannedPatterns = await this.#compilePatterns(submission, 'banned_phrases', bannedRegex);
      if (needsCompilation(submission) && this.#preparing.has(requestId)) {
        report({ type: 'compiled', requestId, ignoredKeywords: grammar?.ignoredKeywords ?? [] });
      }
      const images = (await encodeImages?.(submission, signal)) ?? [];
      await loaded;
      if (!this.#preparing.delete(requestId)) return;
      this.#open(submission, { grammar, stopPatterns, bannedPatterns, images }, submittedAt);
    } catch (thrown) {
      if (!this.#preparing.delete(requestId)) return;
      this.#parts.requests.refuse(requestId, thrown);
      onWork();
    }
  }

  async #compile(submission: Submission): Promise<CompiledGrammar | null> {
    const { requestId, tenantId, constraint } = submission;
    if (constraint === null) return null;
    const { compile, now } = this.#options;
    const { grammarWork, clock } = this.#parts;
    const grammar = await compile(constraint, tenantId);
    const first = grammar.start((units) => grammarWork.spend(tenantId, units));
    // Refuses a grammar whose first mask cannot be computed, and computes the others' before the prompt.
    for (let isKnown = false; !isKnown && this.#preparing.has(requestId); ) {
      while (grammarWork.isSpent(tenantId)) await grammarWork.nextStep();
      if (!this.#preparing.has(requestId)) break;
      const startedAt = now();
      isKnown = nullOn(UnfinishedWork, () => first.mask()) !== null;
      clock.charge(accountOf(submission), now() - startedAt);
      if (!isKnown) await grammarWork.nextStep();
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
