import { commonPrefix } from '../kv/prompt-match.ts';
import type { PromptPrefill } from '../sequences/prompt-prefill.ts';

/** Prompts that one run computes whole, in neighbouring slots: a card computes them in the time of one. */
export class JoinedPrompts {
  readonly #maxRows: number;
  readonly #members: PromptPrefill[];
  #longest: number;

  /** @param maxRows most rows of the run; each prompt has as many as the longest */
  constructor(first: PromptPrefill, maxRows: number) {
    this.#members = [first];
    this.#maxRows = maxRows;
    this.#longest = first.tokens.length;
  }

  /** In the order of their slots. */
  get members(): readonly PromptPrefill[] {
    return this.#members;
  }

  /** Whether the run has room for a prompt. Equal prompts are computed once, one after the other. */
  suits({ tokens }: PromptPrefill): boolean {
    const longest = Math.max(this.#longest, tokens.length);
    if ((this.#members.length + 1) * longest > this.#maxRows) return false;
    return this.#members.every((member) => !areEqual(member.tokens, tokens));
  }

  /** Adds a prompt that suits, if it is in a slot beside the others. */
  add(prefill: PromptPrefill): void {
    const { slot, tokens } = prefill;
    if (slot === this.#members.at(-1)!.slot + 1) this.#members.push(prefill);
    else if (slot === this.#members[0]!.slot - 1) this.#members.unshift(prefill);
    else return;
    this.#longest = Math.max(this.#longest, tokens.length);
  }
}

/** Whether a prompt may be computed with others: nothing of it is known, and one chunk has all of it. */
export const isJoinable = ({ computed, restores, images, tokens }: PromptPrefill, chunk: number): boolean =>
  computed === 0 && !restores && images.length === 0 && tokens.length > 1 && tokens.length <= chunk;

const areEqual = (left: Int32Array, right: Int32Array): boolean =>
  left.length === right.length && commonPrefix(left, right, left.length) === left.length;
