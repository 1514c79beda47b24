import { ApiError } from '../../shared/errors.ts';
import { type DecodeBatch, type ModelRunner, RunTerminated } from '../model/model-runner.ts';
import type { BlockKernel } from '../sampling/block-kernel.ts';
import type { DrawTeam } from '../sampling/team/draw-team.ts';
import type { SamplerVocabulary } from '../sampling/vocabulary.ts';
import { SamplerWorkspace } from '../sampling/workspace.ts';
import { EngineFailure } from './engine-failure.ts';
import { violations } from './invariants.ts';
import type { KvCopy } from './kv-slots.ts';
import type { EngineStatus, StepReport, Submission } from './messages.ts';
import type { OpenRequest } from './open-request.ts';
import type { PromptPrefill } from './prompt-prefill.ts';
import { Requests, type RequestsOptions } from './requests.ts';
import { Roster } from './running-set.ts';
import { DecodeBatchBuilder, prefillChunk } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import {
  type Draft,
  Drafting,
  NO_SPECULATION,
  type SpeculationSettings,
  verification,
} from './speculation.ts';
import { StepTimer } from './step-timer.ts';

export interface EngineOptions extends Omit<RequestsOptions, 'roster' | 'context'> {
  readonly runner: ModelRunner;
  readonly vocabulary: SamplerVocabulary;
  /** What reduces rows of logits for the samplers; they do without where there is none. */
  readonly kernel?: BlockKernel | null;
  /** Draws the tokens of a step on several threads; each sampler draws by itself unless given. */
  readonly team?: DrawTeam | null;
  /** None unless given. */
  readonly speculation?: SpeculationSettings;
}

/** Failed runs in a row that the engine puts up with; one that succeeds makes it forget them. */
const MOST_FAILURES = 2;

/**
 * The loop: one call of `step` runs the model once over all decoding sequences and once over one prompt's next chunk.
 * Sees the model only as rows of tokens in and logits out. `submit` and `abort` may be called at any time, also while a
 * step waits for the model; nothing else touches the slots before that step's run has ended.
 */
export class Engine {
  readonly #runner: ModelRunner;
  readonly #now: () => number;
  readonly #roster: Roster;
  readonly #requests: Requests;
  readonly #batch: DecodeBatchBuilder;
  readonly #drafting: Drafting;
  readonly #team: DrawTeam | null;
  #failures = 0;

  constructor(options: EngineOptions) {
    const { runner, vocabulary, now, maxWaiting, speculation = NO_SPECULATION, team = null } = options;
    const { shape } = runner;
    this.#runner = runner;
    this.#now = now;
    this.#roster = new Roster(shape, maxWaiting);
    this.#batch = new DecodeBatchBuilder(shape.slots, shape.minRows);
    this.#team = team;
    this.#drafting = new Drafting(speculation, shape.prefillChunk);
    const context = {
      vocabulary,
      workspace: new SamplerWorkspace(shape.vocabularySize, options.kernel),
      team,
      mask: new Uint32Array((shape.vocabularySize + 31) >>> 5),
    };
    this.#requests = new Requests({ ...options, roster: this.#roster, context });
  }

  /** Nothing to do until the next submission. */
  get idle(): boolean {
    return this.#roster.requests.size === 0;
  }

  /** A request is being prepared elsewhere: the event loop must turn for its grammar or its images to arrive. */
  get awaitsPreparation(): boolean {
    return this.#requests.preparing > 0;
  }

  get status(): EngineStatus {
    return {
      running: this.#roster.admitted,
      waiting: this.#roster.waiting + this.#requests.preparing,
      healthy: this.#failures <= MOST_FAILURES,
    };
  }

  /** Broken invariants between two steps, one line each; none, if all is well. */
  violations(): string[] {
    return violations(this.#roster);
  }

  /** Reports `admitted` or `refused` before anything else is said of the request. */
  submit(submission: Submission): void {
    this.#requests.submit(submission);
  }

  /** Forgets a request at once; no further event of it will be reported. */
  abort(requestId: string): void {
    this.#requests.abort(requestId);
  }

  /**
   * Decode first, sequences with a draft one by one and the others together, then one prefill chunk.
   * @throws EngineFailure
   */
  async step(): Promise<void> {
    this.#requests.expire(this.#now());
    this.#roster.admit();
    const { decoding, kv } = this.#roster;
    const drafts = this.#drafting.plan(decoding);
    for (const draft of drafts) await this.#verify(draft);
    const verified = new Set(drafts.map(({ sequence }) => sequence));
    const rows = decoding.map((sequence) => (sequence && verified.has(sequence) ? null : sequence));
    const batch = this.#batch.build(rows, (slot) => decoding[slot]?.computed ?? kv.kept(slot));
    if (batch !== null) await this.#decode(batch, rows);
    const prefill = this.#roster.nextPrefill();
    if (prefill !== null) await this.#prefill(prefill);
  }

  /**
   * To be called before waiting for the next submission: reports how things stand and checks the books.
   * @throws EngineFailure
   */
  settle(): void {
    this.#flush(true);
    this.#check();
  }

  async #decode(batch: DecodeBatch, bySlot: readonly (Sequence | null)[]): Promise<void> {
    const timer = new StepTimer(this.#now);
    const sequences = bySlot.slice(batch.firstSlot, batch.firstSlot + batch.rows);
    let logits: Float32Array;
    try {
      const result = this.#runner.decode(batch);
      logits = result instanceof Float32Array ? result : await result;
    } catch {
      return this.#runFailed(sequences.flatMap((sequence) => sequence?.request ?? []));
    }
    this.#failures = 0;
    const now = timer.mark('model');
    this.#drawAhead(sequences, logits);
    let tokens = 0;
    for (let row = 0; row < sequences.length; row++) {
      const sequence = sequences[row];
      if (!sequence || sequence.request.closed) continue;
      this.#requests.decoded(sequence, this.#row(logits, row), now);
      tokens++;
    }
    this.#team?.end();
    timer.mark('sampling');
    this.#copy(this.#roster.compact());
    this.#flush(false, timer.report('decode', tokens, tokens));
  }

  /** The tokens of several sequences are drawn together. */
  #drawAhead(sequences: readonly (Sequence | null | undefined)[], logits: Float32Array): void {
    const team = this.#team;
    if (team === null || sequences.length < 2 || !team.begin(logits)) return;
    for (const [row, sequence] of sequences.entries()) {
      if (sequence && !sequence.request.closed) this.#requests.enlist(sequence, this.#row(logits, row));
    }
    team.run();
  }

  /**
   * One run over the last token and the draft, then the sampler as ever: it draws token after token as long as it draws
   * what was drafted, and the first other one is the next token. What the run wrote behind it is overwritten later.
   */
  async #verify(draft: Draft): Promise<void> {
    const timer = new StepTimer(this.#now);
    const { sequence } = draft;
    const { request } = sequence;
    if (request.closed) return;
    let logits: Float32Array;
    try {
      logits = await this.#runner.prefill(verification(draft), request.signal);
    } catch (thrown) {
      if (!(thrown instanceof RunTerminated)) this.#runFailed([request]);
      return;
    }
    this.#failures = 0;
    const now = timer.mark('model');
    let tokens = 0;
    let drawn = true;
    while (drawn && tokens <= draft.tokens.length && !request.closed && !sequence.finished) {
      this.#requests.decoded(sequence, this.#row(logits, tokens), now);
      drawn = sequence.lastToken === draft.tokens[tokens];
      tokens++;
    }
    const accepted = drawn ? tokens : tokens - 1;
    this.#drafting.observe(draft, accepted);
    timer.mark('sampling');
    this.#flush(false, timer.report('decode', 1, tokens, draft.tokens.length, accepted));
  }

  async #prefill(prefill: PromptPrefill): Promise<void> {
    const timer = new StepTimer(this.#now);
    const { request } = prefill;
    if (prefill.slot < 0) this.#seat(prefill);
    const { slot, tokens, computed, wanted, images } = prefill;
    const chunk = prefillChunk(slot, tokens, computed, this.#runner.shape.prefillChunk, wanted, images);
    timer.mark('other');
    let logits: Float32Array;
    try {
      logits = await this.#runner.prefill(chunk, request.signal);
    } catch (thrown) {
      if (!(thrown instanceof RunTerminated)) this.#runFailed([request]);
      return;
    }
    this.#failures = 0;
    const now = timer.mark('model');
    if (!request.closed) {
      const rows = chunk.logitsAt.length;
      const row = (index: number): Float32Array => this.#row(logits, index < 0 ? rows + index : index);
      const copies = this.#requests.prefilled(prefill, computed + chunk.tokens.length, row, now);
      timer.mark('sampling');
      this.#copy(copies);
    }
    this.#flush(false, timer.report('prefill', 1, chunk.tokens.length));
  }

  #seat(prefill: PromptPrefill): void {
    const seat = this.#roster.seat(prefill);
    this.#copy(seat.copies);
    this.#requests.start(prefill, seat.cached, this.#now());
  }

  /** A run of the model failed: so do the requests in it, and nobody else. */
  #runFailed(requests: readonly OpenRequest[]): void {
    this.#failures++;
    const error = new ApiError('upstream_error', 'The model failed while computing this request.');
    for (const request of requests) this.#requests.fail(request, error, true);
    this.#flush(true);
    this.#check();
    if (this.#failures > MOST_FAILURES) throw new EngineFailure('the model fails again and again');
  }

  #row(logits: Float32Array, row: number): Float32Array {
    const { vocabularySize } = this.#runner.shape;
    return logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  }

  /** A copy that fails leaves slots that hold something else than the books say. */
  #copy(copies: readonly KvCopy[]): void {
    try {
      for (const { from, to, length } of copies) this.#runner.copy(from, to, length);
    } catch (cause) {
      throw new EngineFailure('a KV copy failed', { cause });
    }
  }

  #check(): void {
    const broken = this.violations();
    if (broken.length > 0) throw new EngineFailure(broken.join('; '));
  }

  #flush(urgent: boolean, report?: StepReport): void {
    this.#requests.flush(this.status, urgent, report);
  }
}
