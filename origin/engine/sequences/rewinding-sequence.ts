import type { DrawRequest } from '../../model/device-draws.ts';
import { bytesOf } from '../../tokenizer/token-bytes.ts';
import type { PromptSnapshots } from '../kv/state-snapshots.ts';
import { BannedPhrases } from '../text/banned-phrases.ts';
import type { Healing } from '../text/healing.ts';
import type { OutputState } from '../text/sequence-output.ts';
import type { QueuedSequence } from './open-request.ts';
import { healPrompt } from './prompt-healing.ts';
import { Sequence } from './sequence.ts';
import type { SampledToken, SamplingContext, TokenPlace } from './sequence-sampling.ts';
import { TokenBans } from './token-bans.ts';

/** The state before a token that may be taken back. */
interface Saved {
  /** Position of the token. */
  readonly at: number;
  readonly id: number;
  readonly score: number;
  readonly output: OutputState;
  /** Restores sampler and constraint. */
  readonly restore: () => void;
}

const NOTHING = (): void => undefined;

/** Returns a sequence that can take tokens back if its request may need that, else a plain one. */
export const newSequence = (
  queued: QueuedSequence,
  healing: Healing | null,
  context: SamplingContext,
  prompt: PromptSnapshots | null,
): Sequence =>
  queued.request.isBanning || healing !== null
    ? new RewindingSequence(queued, healing, context, prompt)
    : new Sequence(queued, context, prompt);

/**
 * A sequence that takes tokens back: those of a banned phrase that it has generated, and the last tokens of
 * its prompt, which healing chooses again.
 */
class RewindingSequence extends Sequence {
  readonly #healing: Healing | null;
  readonly #phrases: BannedPhrases<Saved>;
  readonly #bans = new TokenBans();
  /** Tokens that were taken back. They count as generated. */
  #undone = 0;
  /** First position of the prompt whose KV a healed token has overwritten; Infinity = none. */
  #stale = Number.POSITIVE_INFINITY;
  /** Tokens before the last whose KV is computed again, one per step. */
  #behind = 0;
  /** Whether its slot has the state of another position than the next one. */
  #isAstray = true;
  /** Whether tokens of the prompt were computed again, one by one. */
  #isRecomputed = false;

  constructor(
    queued: QueuedSequence,
    healing: Healing | null,
    context: SamplingContext,
    prompt: PromptSnapshots | null,
  ) {
    super(queued, context, prompt);
    this.#healing = healing;
    this.#phrases = new BannedPhrases(queued.request.banned);
  }

  override get computed(): number {
    return this.length === 0 ? this.history.length : super.computed - this.#behind;
  }

  override get completionTokens(): number {
    return this.length + this.#undone;
  }

  /** Null if the row may be needed again. */
  override get coldness(): number | null {
    return this.request.isBanning ? null : super.coldness;
  }

  protected override get place(): TokenPlace {
    const { forbidden, ...place } = super.place;
    return { ...place, forbidden: [...forbidden, ...this.#bannedAt(this.history.length)] };
  }

  #bannedAt(position: number): readonly number[] {
    return this.#bans.at(position, this.length === 0);
  }

  override drawRequest(): DrawRequest | null {
    return this.#behind > 0 ? null : super.drawRequest();
  }

  override submitDraw(logits: Float32Array): boolean {
    return this.#behind > 0 || super.submitDraw(logits);
  }

  protected override get mayReturn(): boolean {
    return this.#phrases.first !== null;
  }

  override enterSlot(): void {
    this.#settleState();
  }

  protected override take(logits: Float32Array, now: number): void {
    if (this.#behind > 0) {
      this.#behind--;
      return;
    }
    try {
      this.#takeTokens(logits, now);
    } finally {
      if (this.slot >= 0) this.#settleState();
    }
  }

  /** Puts an earlier state into the slot if tokens were taken back, else keeps one at times. */
  #settleState(): void {
    if (this.snapshots === null || this.finish !== null) return;
    const next = this.length === 0 ? this.history.length : super.computed;
    if (!this.#isAstray) {
      const earliest = (this.#phrases.first?.at ?? this.history.length) - 1;
      if (this.request.isBanning && this.length > 0) this.snapshots.keep(this.slot, next, earliest);
      return;
    }
    const { tokens } = this.request.prompt(this.queued.promptIndex);
    const isPrompt = !this.#isRecomputed && this.history.promptLength === tokens.length;
    this.#behind = this.snapshots.restore(this.slot, next, isPrompt);
    this.#isAstray = false;
  }

  #takeTokens(logits: Float32Array, now: number): void {
    const at = this.history.length;
    while (this.length > 0 && this.#take(() => this.sampling.next(logits, this.place), now)) {
      // The next step computes the row of an earlier place again, or this one.
      if (this.history.length < at || !this.sampling.mayRepeat) break;
    }
    if (this.length === 0 && this.finish === null) this.#takeFirst(this.firstRow!, now);
  }

  /** Samples the first token; in a later step if too many were taken back in this one. */
  #takeFirst(logits: Float32Array, now: number): void {
    const sample = () => this.#heal() ?? this.sampling.next(logits, this.place);
    while (this.#take(sample, now)) if (!this.sampling.mayRepeat) return;
    this.#isAstray = true;
    this.#behind = Math.max(0, this.history.length - 1 - this.#stale);
    this.#stale = Number.POSITIVE_INFINITY;
  }

  /**
   * Chooses the last tokens of the prompt again. Returns the token that takes their place; null if they stay.
   */
  #heal(): SampledToken | null {
    if (this.#healing === null) return null;
    const { tokens, maxTokens } = this.request.prompt(this.queued.promptIndex);
    const capacity = tokens.length + maxTokens;
    const healed = healPrompt(this.#healing, this.sampling, tokens, capacity, (at) => this.#bannedAt(at));
    if (healed !== null) this.history = healed.history;
    return healed?.token ?? null;
  }

  /** Samples and takes a token. Returns true if it was taken back, so that another one has to be sampled. */
  #take(sample: () => SampledToken | null, now: number): boolean {
    const restore = this.request.isBanning ? this.sampling.save() : NOTHING;
    const token = sample();
    if (token === null) {
      this.end('stop', null);
      return false;
    }
    const begun = this.#pushWatched(token, restore);
    if (begun === null) this.conclude(token);
    else this.#undo(begun);
    this.count(now);
    return begun !== null && this.finish === null;
  }

  /** Adds a token. If it completes a banned phrase, returns the state before the token that began it. */
  #pushWatched(token: SampledToken, restore: () => void): Saved | null {
    const { id, healed } = token;
    const { context, output, score } = this;
    const saved = { at: this.history.length, id, score, output: output.state, restore };
    const text = this.push(token);
    if (!this.request.shows(id, context.tokenBytes)) return null;
    const bytes = bytesOf(context.tokenBytes, id).subarray(healed.length);
    const end = output.stop === null ? Number.POSITIVE_INFINITY : output.passed;
    const begun = this.#phrases.read(bytes, text, end, saved);
    output.hold(this.#phrases.first?.output.passed ?? Number.POSITIVE_INFINITY);
    return begun;
  }

  /** Takes a token and all later ones back, and bans it from its place. */
  #undo({ at, id, score, output, restore }: Saved): void {
    const { history } = this;
    const isFirst = at === history.promptLength;
    const undone = history.length - at;
    if (isFirst || undone > 1) this.#isAstray = true;
    this.#bans.add(id, at, isFirst);
    this.#undone += undone;
    history.truncate(at);
    this.score = score;
    this.output.restore(output, this.#phrases.unfinished, undone);
    restore();
    if (!isFirst) return;
    if (undone > 1) this.#stale = at;
    if (at === this.request.prompt(this.queued.promptIndex).tokens.length) return;
    if (undone > 1) this.#isRecomputed = true;
    this.history = this.newHistory();
  }
}
