import type { EventOf, FinishReason, GenerationEvent } from '../../shared/generation.ts';
import type { Constraint } from '../grammar/constraint.ts';
import { type TokenLogprobs, tokenLogprob } from '../sampling/logprobs.ts';
import { Sampler } from '../sampling/sampler.ts';
import type { DrawTeam } from '../sampling/team/draw-team.ts';
import { TokenHistory } from '../sampling/token-history.ts';
import type { SamplerVocabulary } from '../sampling/vocabulary.ts';
import type { SamplerWorkspace } from '../sampling/workspace.ts';
import type { OpenRequest, PendingSequence } from './open-request.ts';
import type { DecodeRow } from './scheduler.ts';
import { SequenceOutput } from './sequence-output.ts';
import { tokenEntry } from './token-logprob.ts';

/** What all sequences of an engine use to turn logits into tokens. */
export interface SamplingContext {
  readonly vocabulary: SamplerVocabulary;
  readonly workspace: SamplerWorkspace;
  /** Draws the tokens of several sequences together; null = each draws by itself. */
  readonly team: DrawTeam | null;
  /** Scratch for a grammar's mask with the end tokens added; ⌈vocabulary ÷ 32⌉ words. */
  readonly mask: Uint32Array;
}

/** A token, and its logprobs where they are needed. */
interface Drawn {
  readonly id: number;
  readonly scored: TokenLogprobs | null;
}

interface Finish {
  readonly reason: FinishReason;
  readonly stopReason: string | number | null;
}

const NONE: readonly number[] = [];

/** One choice from its first token on, or several that are the same: logits in, tokens and events out. */
export class Sequence implements DecodeRow {
  readonly request: OpenRequest;
  readonly pending: PendingSequence;
  slot = -1;

  readonly #context: SamplingContext;
  readonly #choice: number;
  readonly #maxTokens: number;
  readonly #history: TokenHistory;
  readonly #sampler: Sampler;
  readonly #constraint: Constraint | null;
  readonly #output: SequenceOutput;
  /** By which the team knows the draw of the next token; −1 = it does not. */
  #draw = -1;
  #score = 0;
  #finish: Finish | null = null;
  /** Time of the last event. */
  #publishedAt = Number.NEGATIVE_INFINITY;

  constructor(pending: PendingSequence, context: SamplingContext) {
    const { request, promptIndex, candidate } = pending;
    const { submission } = request;
    const { tokens, maxTokens } = request.prompt(promptIndex);
    this.request = request;
    this.pending = pending;
    this.#context = context;
    this.#choice = promptIndex * submission.choices + candidate;
    this.#maxTokens = maxTokens;
    this.#history = new TokenHistory(tokens, tokens.length + maxTokens);
    const identity = { seed: submission.seed, prompt: promptIndex, choice: candidate };
    this.#sampler = new Sampler(submission.sampling, identity, context.vocabulary, context.workspace);
    this.#constraint = request.grammar?.start() ?? null;
    this.#output = new SequenceOutput({
      tokenBytes: context.vocabulary.tokenBytes,
      stops: request.stops,
      includeStop: submission.includeStop,
      tokenIds: submission.tokenIds,
      logprobs: submission.logprobs !== null,
    });
    if (maxTokens === 0) this.#end('length', null);
  }

  /** All tokens but the last, which the next step feeds. */
  get computed(): number {
    return this.#history.length - 1;
  }

  get lastToken(): number {
    return this.#history.at(this.#history.length - 1);
  }

  /** Prompt and output so far, its last token included; a view. */
  get tokens(): Int32Array {
    return this.#history.tokens.subarray(0, this.#history.length);
  }

  /** Tokens it may still generate. */
  get remaining(): number {
    return this.#maxTokens - this.completionTokens;
  }

  get completionTokens(): number {
    return this.#history.length - this.#history.promptLength;
  }

  get finished(): boolean {
    return this.#finish !== null;
  }

  /**
   * Takes up the next token, drawn ahead or now.
   * @param logits one raw row; not modified
   * @throws NoCandidatesError, InvalidLogitsError
   */
  advance(logits: Float32Array, now: number): void {
    const drawn = this.#drawnAhead() ?? this.#drawnHere(logits);
    if (drawn === null) {
      this.#end('stop', null);
      return;
    }
    this.#history.push(drawn.id);
    this.#take(drawn);
    if (this.#finish === null && this.remaining === 0) this.#end('length', null);
    this.request.countToken(this.pending.copies, now);
  }

  /**
   * Puts the draw of the next token on the team's list, unless whole sets of tokens are masked.
   * @param logits the row that `advance` will be given
   */
  enlist(logits: Float32Array): void {
    const sampler = this.#sampler;
    const { team } = this.#context;
    if (team === null || this.#constraint !== null || sampler.allowed !== null) return;
    const edits = sampler.edit(logits, this.#history, this.#forbidden);
    const alternatives = this.#scored ? (this.request.submission.logprobs ?? 0) : null;
    this.#draw = team.add(sampler.draw, logits, edits, this.completionTokens, alternatives);
  }

  #drawnAhead(): Drawn | null {
    const { team } = this.#context;
    const draw = this.#draw;
    const id = team?.token(draw) ?? null;
    this.#draw = -1;
    if (team === null || id === null) return null;
    this.#sampler.draw.bound = team.bound(draw);
    return { id, scored: this.#scored ? team.logprobs(draw) : null };
  }

  /** Null where the grammar leaves nothing. */
  #drawnHere(logits: Float32Array): Drawn | null {
    const mask = this.#mask();
    if (mask === 'nothing') return null;
    const id = this.#sampler.sample(logits, this.#history, this.completionTokens, mask, this.#forbidden);
    if (!this.#scored) return { id, scored: null };
    const { logprobs } = this.request.submission;
    const { workspace } = this.#context;
    return { id, scored: tokenLogprob(logits, id, logprobs ?? 0, workspace, this.#sampler.sampledRaw) };
  }

  /** Tokens that may not come next, whatever the grammar. */
  get #forbidden(): readonly number[] {
    return this.#early ? this.request.endIds : NONE;
  }

  /** Whether the next token may not end the text yet. */
  get #early(): boolean {
    return this.completionTokens < this.request.submission.minTokens;
  }

  /** Whether tokens' logprobs are needed. */
  get #scored(): boolean {
    const { logprobs, scores } = this.request.submission;
    return logprobs !== null || scores;
  }

  /**
   * The events that are due, the finish included.
   * @param affordableMs the least interval there is time for; a submission's own is never shortened by it
   */
  publish(now: number, affordableMs: number): GenerationEvent[] {
    if (this.#finish === null && !this.#due(now, affordableMs)) return [];
    this.#publishedAt = now;
    const event = this.#output.take(this.#choice, this.completionTokens, this.#finish === null);
    const finish = this.#finish === null ? null : this.#finishEvent(this.#finish);
    const events: GenerationEvent[] = [];
    for (let copy = 0; copy < this.pending.copies; copy++) {
      const choice = this.#choice + copy;
      if (event !== null) events.push({ ...event, choice });
      if (finish !== null) events.push({ ...finish, choice });
    }
    return events;
  }

  /** The first step after the end of an interval; intervals are counted from the clock's zero, the same for all. */
  #due(now: number, affordableMs: number): boolean {
    const { eventIntervalMs } = this.request.submission;
    if (eventIntervalMs === 0) return true;
    const interval = Math.max(eventIntervalMs, affordableMs);
    return Math.floor(now / interval) > Math.floor(this.#publishedAt / interval);
  }

  /** Decides what the token means: text, the end, or both. */
  #take({ id, scored }: Drawn): void {
    const { submission, stopIds, eosIds } = this.request;
    const { vocabulary } = this.#context;
    const stopsHere = stopIds.has(id);
    const ends = stopsHere || eosIds.has(id);
    const special = vocabulary.tokenBytes.special[id] === 1;
    const visible = ends ? stopsHere && submission.includeStop : !(submission.skipSpecialTokens && special);
    let entry = null;
    if (scored !== null) {
      this.#score += scored.logprob;
      if (submission.logprobs !== null) entry = tokenEntry(vocabulary.tokenBytes, id, scored, !visible);
    }
    this.#output.push(id, entry, visible, !ends && this.completionTokens >= submission.minTokens);
    if (ends) this.#end('stop', stopsHere ? id : null);
    else if (this.#output.stop !== null) this.#end('stop', this.#output.stop);
    else this.#constraint?.accept(id);
  }

  #end(reason: FinishReason, stopReason: string | number | null): void {
    this.#finish = { reason, stopReason };
    this.#output.end();
  }

  /**
   * What the grammar allows, end tokens where it is complete and nowhere else: one that is not flagged as special has a
   * text, which a grammar may allow. null = everything; 'nothing' = the end.
   */
  #mask(): Uint32Array | null | 'nothing' {
    if (this.#constraint === null) return null;
    const { mask } = this.#context;
    mask.set(this.#constraint.mask());
    const { endIds, eosIds } = this.request;
    for (const id of this.#early ? endIds : eosIds) mask[id >>> 5]! &= ~(1 << (id & 31));
    if (!this.#early && this.#constraint.accepting)
      for (const id of eosIds) mask[id >>> 5]! |= 1 << (id & 31);
    return isEmpty(mask) ? 'nothing' : mask;
  }

  #finishEvent(finish: Finish): EventOf<'finish'> {
    const event: EventOf<'finish'> = {
      type: 'finish',
      choice: this.#choice,
      reason: finish.reason,
      stopReason: finish.stopReason,
      completionTokens: this.completionTokens,
    };
    if (this.request.submission.scores) event.score = this.#score;
    return event;
  }
}

function isEmpty(mask: Uint32Array): boolean {
  for (let word = 0; word < mask.length; word++) if (mask[word] !== 0) return false;
  return true;
}
