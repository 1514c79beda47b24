import { type ErrorCode, toApiError } from '../../shared/errors.ts';
import type { WireConstraint } from '../../shared/generation.ts';
import type { CompiledGrammar } from '../grammar/constraint.ts';
import { type DecodeBatch, type ModelRunner, RunTerminated } from '../model/model-runner.ts';
import { InvalidLogitsError, NoCandidatesError } from '../sampling/errors.ts';
import type { SamplerVocabulary } from '../sampling/vocabulary.ts';
import { SamplerWorkspace } from '../sampling/workspace.ts';
import { violations } from './invariants.ts';
import type { KvCopy } from './kv-slots.ts';
import type { EngineReport, EngineStatus, Submission } from './messages.ts';
import { OpenRequest } from './open-request.ts';
import { Outbox } from './outbox.ts';
import type { PromptPrefill } from './prompt-prefill.ts';
import { Roster } from './roster.ts';
import { DecodeBatchBuilder, prefillChunk } from './scheduler.ts';
import { type SamplingContext, Sequence } from './sequence.ts';
import { StepTimer } from './step-timer.ts';
import { Throughput } from './throughput.ts';

export interface EngineOptions {
  readonly runner: ModelRunner;
  readonly vocabulary: SamplerVocabulary;
  /** Tokens that end a text. */
  readonly eosIds: readonly number[];
  /** @throws ApiError when the grammar is not valid */
  readonly compile: (constraint: WireConstraint) => CompiledGrammar | Promise<CompiledGrammar>;
  /** Sequences that may wait for a slot. */
  readonly maxWaiting: number;
  /** Unix milliseconds, with fractions. */
  readonly now: () => number;
  readonly report: (report: EngineReport) => void;
  /** Called when a request has been opened, which may be some time after its submission. */
  readonly onWork: () => void;
}

/** The engine's books do not add up: it must not go on. */
export class EngineCorrupted extends Error {
  override readonly name = 'EngineCorrupted';
}

/** Failed runs in a row after which the engine calls itself unhealthy; one that succeeds heals it. */
const FAILURES_UNTIL_UNHEALTHY = 3;
/** Finished sequences that retry-after looks back on. */
const THROUGHPUT_WINDOW = 64;

/**
 * The loop: one call of `step` runs the model once over all decoding sequences and once over one prompt's next chunk.
 * Sees the model only as rows of tokens in and logits out. `submit` and `abort` may be called at any time, also while a
 * step waits for the model; nothing else touches the slots before that step's run has ended.
 */
export class Engine {
  readonly #options: EngineOptions;
  readonly #roster: Roster;
  readonly #context: SamplingContext;
  readonly #batch: DecodeBatchBuilder;
  readonly #throughput = new Throughput(THROUGHPUT_WINDOW);
  readonly #outbox = new Outbox();
  /** Requests whose grammar is being compiled. */
  readonly #compiling = new Set<string>();
  #prefilling: { readonly prefill: PromptPrefill; readonly controller: AbortController } | null = null;
  #nextDeadline = Number.POSITIVE_INFINITY;
  #failures = 0;

  constructor(options: EngineOptions) {
    const { shape } = options.runner;
    this.#options = options;
    this.#roster = new Roster(shape, options.maxWaiting);
    this.#batch = new DecodeBatchBuilder(shape.slots);
    this.#context = {
      vocabulary: options.vocabulary,
      workspace: new SamplerWorkspace(shape.vocabularySize),
      mask: new Uint32Array((shape.vocabularySize + 31) >>> 5),
    };
  }

  /** Nothing to do until the next submission. */
  get idle(): boolean {
    return this.#roster.requests.size === 0;
  }

  /** A grammar is being compiled elsewhere: the event loop must turn for its result to arrive. */
  get awaitsGrammar(): boolean {
    return this.#compiling.size > 0;
  }

  get status(): EngineStatus {
    return {
      running: this.#roster.admitted,
      waiting: this.#roster.waiting + this.#compiling.size,
      healthy: this.#failures < FAILURES_UNTIL_UNHEALTHY,
    };
  }

  /** Broken invariants, for tests; always empty. */
  violations(): string[] {
    return violations(this.#roster);
  }

  /** Reports `admitted` or `refused` before anything else is said of the request. */
  submit(submission: Submission): void {
    const { requestId, constraint, prompts, choices } = submission;
    const sequences = prompts.length * choices;
    if (!this.#roster.hasRoom(sequences)) {
      const ahead = this.#roster.waiting + sequences - this.#options.maxWaiting;
      const retryAfterMs = this.#throughput.waitFor(Math.max(1, ahead), this.#options.now());
      this.#options.report({ type: 'refused', requestId, retryAfterMs });
      return;
    }
    this.#options.report({ type: 'admitted', requestId });
    if (constraint === null) this.#open(submission, null);
    else void this.#openConstrained(submission, constraint);
  }

  /** Forgets a request at once; no further event of it will be reported. */
  abort(requestId: string): void {
    this.#compiling.delete(requestId);
    const request = this.#roster.requests.get(requestId);
    if (request !== undefined) this.#close(request);
    this.#outbox.drop(requestId);
  }

  /**
   * Decode first, then one prefill chunk.
   * @throws EngineCorrupted the thread cannot go on
   */
  async step(): Promise<void> {
    this.#expire();
    this.#roster.admit();
    const batch = this.#batch.build(this.#roster.decoding, (slot) => this.#roster.kv.kept(slot));
    if (batch !== null) await this.#decode(batch);
    const prefill = this.#roster.nextPrefill();
    if (prefill !== null) await this.#prefill(prefill);
  }

  /** To be called before waiting for the next submission: reports how things stand and checks the books. */
  settle(): void {
    this.#flush(true);
    this.#check();
  }

  async #openConstrained(submission: Submission, constraint: WireConstraint): Promise<void> {
    const { requestId } = submission;
    this.#compiling.add(requestId);
    try {
      const grammar = await this.#options.compile(constraint);
      if (this.#compiling.delete(requestId)) this.#open(submission, grammar);
    } catch (thrown) {
      if (!this.#compiling.delete(requestId)) return;
      const { code, message, param } = toApiError(thrown);
      this.#outbox.add(requestId, { type: 'error', code, message, param, retryable: false });
      this.#flush(false);
    }
  }

  #open(submission: Submission, grammar: CompiledGrammar | null): void {
    const request = new OpenRequest(submission, grammar, this.#options.eosIds, this.#options.now());
    this.#nextDeadline = Math.min(this.#nextDeadline, submission.deadline);
    this.#roster.open(request);
    this.#options.onWork();
  }

  async #decode(batch: DecodeBatch): Promise<void> {
    const { runner, now } = this.#options;
    const timer = new StepTimer(now);
    const sequences = this.#roster.decoding.slice(batch.firstSlot, batch.firstSlot + batch.rows);
    let logits: Float32Array;
    try {
      const result = runner.decode(batch);
      logits = result instanceof Float32Array ? result : await result;
    } catch {
      return this.#runFailed(sequences.flatMap((sequence) => sequence?.request ?? []));
    }
    this.#failures = 0;
    const computedAt = timer.mark('model');
    let tokens = 0;
    for (let row = 0; row < sequences.length; row++) {
      const sequence = sequences[row];
      if (!sequence || sequence.request.closed) continue;
      tokens++;
      this.#advance(sequence, this.#row(logits, row), computedAt);
      if (sequence.finished && !sequence.request.closed) this.#roster.retire(sequence);
      this.#publish(sequence, computedAt);
    }
    timer.mark('sampling');
    this.#copy(this.#roster.compact());
    this.#outbox.addReport(timer.report('decode', tokens, tokens));
    this.#flush(false);
  }

  async #prefill(prefill: PromptPrefill): Promise<void> {
    const { runner, now } = this.#options;
    const timer = new StepTimer(now);
    if (prefill.slot < 0) this.#seat(prefill, timer.mark('other'));
    const { slot, tokens, computed, wanted } = prefill;
    const chunk = prefillChunk(slot, tokens, computed, runner.shape.prefillChunk, wanted);
    const controller = new AbortController();
    this.#prefilling = { prefill, controller };
    let logits: Float32Array;
    try {
      logits = await runner.prefill(chunk, controller.signal);
    } catch (thrown) {
      if (!(thrown instanceof RunTerminated)) this.#runFailed([prefill.request]);
      return;
    } finally {
      this.#prefilling = null;
    }
    this.#failures = 0;
    const computedAt = timer.mark('model');
    if (!prefill.request.closed) {
      const end = computed + chunk.tokens.length;
      prefill.advance(end, (row) => this.#row(logits, row), this.#context);
      this.#roster.kv.record(slot, end);
      if (prefill.done) this.#begin(prefill, this.#row(logits, chunk.logitsAt.length - 1), computedAt);
    }
    timer.mark('sampling');
    this.#outbox.addReport(timer.report('prefill', 1, chunk.tokens.length));
    this.#flush(false);
  }

  #seat(prefill: PromptPrefill, now: number): void {
    const { request, promptIndex } = prefill;
    const seat = this.#roster.seat(prefill);
    this.#copy(seat.copies);
    if (request.hasStarted(promptIndex)) return;
    this.#outbox.add(request.submission.requestId, request.start(promptIndex, seat.cached, now));
  }

  /** Every choice of the prompt samples its first token from the same logits, then takes its own slot. */
  #begin(prefill: PromptPrefill, logits: Float32Array, now: number): void {
    const { request } = prefill;
    if (prefill.echoes) {
      this.#outbox.add(request.submission.requestId, prefill.event(this.#options.vocabulary.tokenBytes));
    }
    const sequences: Sequence[] = [];
    for (const pending of prefill.sequences) {
      const sequence = new Sequence(pending, this.#context, now);
      if (!sequence.finished) this.#advance(sequence, logits, now);
      if (request.closed) return;
      sequences.push(sequence);
    }
    const copies = this.#roster.place(
      prefill,
      sequences.filter((sequence) => !sequence.finished),
    );
    for (const sequence of sequences) this.#publish(sequence, now);
    this.#copy(copies);
  }

  /** Samples one token; a request that cannot go on is closed with its error. */
  #advance(sequence: Sequence, logits: Float32Array, now: number): void {
    try {
      if (sequence.advance(logits)) sequence.request.countToken(now);
    } catch (thrown) {
      const { code, message } = samplingError(thrown);
      this.#fail(sequence.request, code, message, thrown instanceof InvalidLogitsError);
    }
  }

  #publish(sequence: Sequence, now: number): void {
    const { request } = sequence;
    if (request.closed) return;
    const { requestId } = request.submission;
    this.#outbox.add(requestId, ...sequence.publish(now));
    if (!sequence.finished) return;
    this.#roster.refund(sequence);
    this.#throughput.recordFinish(now);
    request.unfinished--;
    if (request.unfinished > 0) return;
    this.#outbox.add(requestId, request.done(now));
    this.#close(request);
  }

  /** Ends requests whose time is over, waiting or running. */
  #expire(): void {
    const now = this.#options.now();
    if (now < this.#nextDeadline) return;
    this.#nextDeadline = Number.POSITIVE_INFINITY;
    for (const request of [...this.#roster.requests.values()]) {
      const { deadline } = request.submission;
      if (deadline > now) this.#nextDeadline = Math.min(this.#nextDeadline, deadline);
      else this.#fail(request, 'upstream_timeout', 'The request took longer than its time limit.', false);
    }
    this.#flush(false);
  }

  /** A run of the model failed: so do the requests in it, and nobody else. */
  #runFailed(requests: readonly OpenRequest[]): void {
    this.#failures++;
    const message = 'The model failed while computing this request.';
    for (const request of requests) this.#fail(request, 'upstream_error', message, true);
    this.#flush(true);
    this.#check();
  }

  /** @param modelFault the model is to blame: the request may succeed elsewhere, and its KV is not to be reused */
  #fail(request: OpenRequest, code: ErrorCode, message: string, modelFault: boolean): void {
    if (request.closed) return;
    const { requestId } = request.submission;
    const usage = request.usage();
    this.#outbox.add(requestId, { type: 'error', code, message, param: null, retryable: modelFault, usage });
    this.#close(request, !modelFault);
  }

  #close(request: OpenRequest, intact = true): void {
    this.#roster.close(request, intact);
    if (this.#prefilling?.prefill.request === request) this.#prefilling.controller.abort();
  }

  #row(logits: Float32Array, row: number): Float32Array {
    const { vocabularySize } = this.#options.runner.shape;
    return logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  }

  /** A copy that fails leaves slots that hold something else than the books say. */
  #copy(copies: readonly KvCopy[]): void {
    try {
      for (const { from, to, length } of copies) this.#options.runner.copy(from, to, length);
    } catch (cause) {
      throw new EngineCorrupted('a KV copy failed', { cause });
    }
  }

  #check(): void {
    const broken = this.violations();
    if (broken.length > 0) throw new EngineCorrupted(broken.join('; '));
  }

  #flush(urgent: boolean): void {
    const message = this.#outbox.take(this.status, urgent);
    if (message !== null) this.#options.report(message);
  }
}

/** What the caller is told when no token could be sampled. */
function samplingError(thrown: unknown): { code: ErrorCode; message: string } {
  if (thrown instanceof NoCandidatesError) {
    return { code: 'invalid_value', message: 'Every token is forbidden by the parameters of the request.' };
  }
  if (thrown instanceof InvalidLogitsError) {
    return { code: 'upstream_error', message: 'The model gave no valid probabilities.' };
  }
  return toApiError(thrown);
}
