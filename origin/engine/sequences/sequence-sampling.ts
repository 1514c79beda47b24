import type { GrammarWork } from '@continuo/grammar/grammar-work.ts';
import { type Constraint, UnfinishedWork } from '@continuo/grammar/runtime/constraint.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { nullOn } from '@continuo/shared/null-on.ts';
import type { DrawnToken, DrawRequest } from '../../model/device-draws.ts';
import type { SparseRows } from '../../model/model-runner.ts';
import { NoCandidatesError } from '../../sampling/argmax.ts';
import { drawnLogprobs, type TokenLogprobs, tokenLogprob } from '../../sampling/logprobs.ts';
import { wordsOf } from '../../sampling/masked-copy.ts';
import type { SamplerPool } from '../../sampling/pool/sampler-pool.ts';
import { Sampler } from '../../sampling/sampler.ts';
import type { TokenHistory } from '../../sampling/token-history.ts';
import type { SamplerWorkspace } from '../../sampling/workspace.ts';
import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';
import type { HealingStep } from '../text/healing.ts';
import type { OpenRequest, QueuedSequence } from './open-request.ts';

/** What all sequences of an engine use to turn logits into tokens. */
export interface SamplingContext {
  readonly tokenBytes: TokenBytes;
  readonly workspace: SamplerWorkspace;
  /** Draws the tokens of several sequences in parallel; null = each sequence samples by itself. */
  readonly pool: SamplerPool | null;
  readonly grammarWork: GrammarWork;
  /** Rows of which the device keeps a part; null if all come as a whole. */
  readonly sparse: SparseRows | null;
}

/** A sampled token, with its logprobs if they are wanted. */
export interface SampledToken {
  readonly id: number;
  readonly logprobs: TokenLogprobs | null;
  /** Bytes at its start that the prompt has already; empty except after healing. */
  readonly healed: Uint8Array;
}

/** The place of a token that is to be sampled. */
export interface TokenPlace {
  readonly history: TokenHistory;
  /** How many tokens the sequence has before it; keys the draw. */
  readonly step: number;
  /** False before min_tokens. */
  readonly mayEnd: boolean;
  /** Ids that may not come here, whatever the grammar allows. */
  readonly forbidden: readonly number[];
}

const NO_BYTES = new Uint8Array(0);

/** Samples the tokens of one sequence: its sampler, its constraint and its draws in the pool. */
export class SequenceSampling {
  readonly #request: OpenRequest;
  readonly #context: SamplingContext;
  readonly #sampler: Sampler;
  readonly #constraint: Constraint | null;
  /** Holds a mask of the constraint with the end tokens. */
  readonly #ownMask: Uint32Array;
  /** What the constraint allows next after a submission; null = not known yet, or no constraint. */
  #mask: Uint32Array | 'nothing' | null = null;
  readonly #choices: number;
  /** The pool's handle of the next token's draw; −1 = none. */
  #draw = -1;
  /** The next token, if a device has drawn it. */
  #drawn: DrawnToken | null = null;
  #units = 0;

  constructor({ request, promptIndex, firstChoice, choices }: QueuedSequence, context: SamplingContext) {
    const { sampling } = request.submission;
    this.#request = request;
    this.#context = context;
    this.#choices = choices;
    const identity = { seed: sampling.seed, prompt: promptIndex, choice: firstChoice };
    this.#sampler = new Sampler(sampling, identity, context.tokenBytes, context.workspace);
    const onWork = (units: number) => {
      this.#units += units;
      context.grammarWork.spend(request.tenantId, units);
    };
    this.#constraint = request.grammar?.start(onWork) ?? null;
    const { vocabularySize } = context.workspace;
    this.#ownMask = new Uint32Array(this.#constraint === null ? 0 : wordsOf(vocabularySize));
  }

  /** Units of grammar work so far. */
  get units(): number {
    return this.#units;
  }

  get tokenBytes(): TokenBytes {
    return this.#context.tokenBytes;
  }

  /** True if the next token has to wait for a later step. */
  get mustWait(): boolean {
    return this.#constraint !== null && this.#mask === null && !this.mayRepeat;
  }

  /** Whether another token may be sampled in this step after one was taken back. */
  get mayRepeat(): boolean {
    return !this.#context.grammarWork.isSpent(this.#request.tenantId);
  }

  /** Whether the pool can draw the next token: its logprobs are no list and no row. */
  get #suitsPool(): boolean {
    const { logprobTokenIds, logprobRows } = this.#request.submission;
    return !logprobTokenIds && !logprobRows;
  }

  /**
   * 1 / temperature, if the next token can be drawn from a sparse row; else null. If a mask applies, the draw
   * reads the blocks with tokens that it allows, and only logprobs need sums.
   */
  get coldness(): number | null {
    if (!this.#suitsPool) return null;
    const isMasked = this.#constraint !== null || this.#sampler.allowed !== null;
    return isMasked ? 1 : this.#sampler.coldness;
  }

  /**
   * Returns what a device needs to draw the next token; null if it cannot.
   * @throws ApiError if the grammar allows no token
   */
  drawRequest({ history, step, mayEnd, forbidden }: TokenPlace): DrawRequest | null {
    if (!this.#suitsPool || this.mustWait) return null;
    this.#mask ??= nullOn(UnfinishedWork, () => this.#findMask(mayEnd));
    if (this.#mask === 'nothing' || (this.#mask === null && this.#constraint !== null)) return null;
    const mask = this.#sampler.restrict(this.#mask);
    return this.#sampler.request(history, step, mask, forbidden, this.#listedLogprobs);
  }

  /** Takes the token of the last request; null = the device could not draw it. */
  offer(drawn: DrawnToken | null): void {
    this.#drawn = drawn;
  }

  /**
   * Adds the draw of the next token to the pool, if that suits it.
   * @param logits the row that `next` will get
   * @returns false if the device is to bring some logits first
   */
  submitDraw(logits: Float32Array, { history, step, mayEnd, forbidden }: TokenPlace): boolean {
    const sampler = this.#sampler;
    const { pool, sparse } = this.#context;
    if (pool === null || !this.#suitsPool || this.mustWait) return true;
    this.#mask ??= nullOn(UnfinishedWork, () => this.#findMask(mayEnd));
    if (this.#mask === 'nothing' || (this.#mask === null && this.#constraint !== null)) return true;
    const mask = sampler.restrict(this.#mask);
    const row = sparse?.logits.of(logits) ?? null;
    const edits = sampler.edit(logits, history, forbidden, row, mask);
    const isHere = mask === null || row === null || row.askMasked(mask);
    if (!isHere || !edits.isComplete) return false;
    this.#draw = pool.add(sampler.draw, logits, edits, step, this.#listedLogprobs);
    return true;
  }

  /**
   * Samples a token, or takes it from the pool. Returns null if the grammar allows no token.
   * @param logits one raw row; not modified
   * @throws NoCandidatesError, InvalidLogitsError
   * @throws UnfinishedWork if the token has to wait for a later step
   */
  next(logits: Float32Array, place: TokenPlace): SampledToken | null {
    const sampled = this.#takeFromDevice() ?? this.#takeFromPool() ?? this.#sample(logits, place);
    this.#mask = null;
    return sampled;
  }

  #takeFromDevice(): SampledToken | null {
    const drawn = this.#drawn;
    this.#drawn = null;
    return drawn && { id: drawn.id, logprobs: drawn.scores && drawnLogprobs(drawn.scores), healed: NO_BYTES };
  }

  #takeFromPool(): SampledToken | null {
    const { pool } = this.#context;
    const draw = this.#draw;
    const id = pool?.token(draw) ?? null;
    this.#draw = -1;
    if (pool === null || id === null) return null;
    this.#sampler.draw.bound = pool.bound(draw);
    return { id, logprobs: this.#wantsLogprobs ? pool.logprobs(draw) : null, healed: NO_BYTES };
  }

  #sample(logits: Float32Array, { history, step, mayEnd, forbidden }: TokenPlace): SampledToken | null {
    const mask = this.#mask ?? this.#findMask(mayEnd);
    if (mask === 'nothing') return null;
    this.#context.sparse?.complete(logits);
    const id = this.#sampler.sample(logits, history, step, mask, forbidden);
    return { id, logprobs: this.#logprobs(logits, id, this.#sampler.sampledRaw), healed: NO_BYTES };
  }

  /** How many of the most likely tokens to list; null = no logprobs. */
  get #listedLogprobs(): number | null {
    return this.#wantsLogprobs ? (this.#request.submission.topLogprobs ?? 0) : null;
  }

  get #wantsLogprobs(): boolean {
    const { topLogprobs, scores } = this.#request.submission;
    return topLogprobs !== null || scores;
  }

  #logprobs(logits: Float32Array, id: number, sampledRaw: boolean): TokenLogprobs | null {
    if (!this.#wantsLogprobs) return null;
    const { topLogprobs, logprobTokenIds = topLogprobs ?? 0 } = this.#request.submission;
    const { workspace } = this.#context;
    const scored = tokenLogprob(logits, id, logprobTokenIds, workspace, sampledRaw);
    const row = topLogprobs === null ? null : this.#request.row(logits, this.#choices, workspace);
    return row === null ? scored : { ...scored, row };
  }

  /**
   * The tokens that the grammar allows; null = all. End tokens are allowed only where the text is a complete
   * match, maybe with a reference to the token. One that is not flagged as special has a text, which the
   * grammar may allow elsewhere.
   * @throws ApiError if no token continues a text that is not complete
   */
  #findMask(mayEnd: boolean): Uint32Array | null | 'nothing' {
    const constraint = this.#constraint;
    if (constraint === null) return null;
    const mask = this.#ownMask;
    mask.set(constraint.mask());
    const { finishTokenIds, endTokenIds } = this.#request;
    for (const id of mayEnd ? endTokenIds : finishTokenIds) mask[id >>> 5]! &= ~(1 << (id & 31));
    const isComplete = constraint.accepting;
    const ends = [...endTokenIds].filter((id) => isComplete || constraint.completesWith?.(id));
    for (const id of mayEnd ? ends : []) mask[id >>> 5]! |= 1 << (id & 31);
    if (!isEmpty(mask)) return mask;
    if (isComplete || ends.length > 0) return 'nothing';
    throw new ApiError(
      'invalid_grammar',
      'The grammar allows no token here, although the text is not complete.',
    );
  }

  /** Whether the text may go on with these bytes; null = with any. */
  get allowsBytes(): ((bytes: Uint8Array) => boolean) | null {
    const constraint = this.#constraint;
    return constraint && ((bytes) => constraint.allowsBytes(bytes));
  }

  /**
   * Samples a token of a step of healing. Returns null if the parameters forbid every token:
   * `allowed_token_ids` may lack the prompt's.
   * @param step keys the draw
   */
  sampleHealed(
    { row, conditioned, mask, rest }: HealingStep,
    history: TokenHistory,
    step: number,
    forbidden: readonly number[],
  ): SampledToken | null {
    const id = nullOn(NoCandidatesError, () =>
      this.#sampler.sample(conditioned, history, step, mask, forbidden),
    );
    return id === null ? null : { id, logprobs: this.#logprobs(row, id, false), healed: rest };
  }

  /** Returns a function back to the state before the next token; the tenant pays the repetition. */
  save(): () => void {
    const { bound } = this.#sampler.draw;
    const restore = this.#constraint?.save();
    const { grammarWork, workspace } = this.#context;
    return () => {
      grammarWork.spend(this.#request.tenantId, workspace.vocabularySize);
      this.#sampler.draw.bound = bound;
      restore?.();
    };
  }

  /** Tells the constraint which token was taken. */
  accept({ id, healed }: SampledToken): void {
    if (healed.length === 0) this.#constraint?.accept(id);
    else {
      const bytes = bytesOf(this.#context.tokenBytes, id);
      this.#constraint?.acceptBytes(bytes.subarray(healed.length));
    }
  }
}

function isEmpty(mask: Uint32Array): boolean {
  for (let word = 0; word < mask.length; word++) if (mask[word] !== 0) return false;
  return true;
}
