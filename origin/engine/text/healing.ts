import { wordsOf } from '../../sampling/masked-copy.ts';
import { bytesOf, type TokenBytes } from '../../tokenizer/token-bytes.ts';

/** The choice of one token again: the prompt's, or one whose bytes begin with the rest of the prompt. */
export interface HealingStep {
  /** Position of the token. */
  readonly at: number;
  /** The prompt's token there. */
  readonly promptId: number;
  /** The model's logits. */
  readonly row: Float32Array;
  /**
   * The logits, with the weight of what the prompt's token leads to; the softmax over the mask is the
   * distribution.
   */
  readonly conditioned: Float32Array;
  /** The prompt's token and those whose bytes begin with `rest`; bit (id & 31) of word (id >>> 5). */
  readonly mask: Uint32Array;
  /** The prompt's bytes from this token on. */
  readonly rest: Uint8Array;
}

/** Returns the bytes of a prompt's tokens from one position on. */
export function restOf(tokens: Int32Array, from: number, tokenBytes: TokenBytes): Uint8Array {
  return Uint8Array.from([...tokens.subarray(from)].flatMap((id) => [...bytesOf(tokenBytes, id)]));
}

/** Returns whether a token's bytes begin with these. Special tokens have no bytes of text. */
export function covers({ bytes, offsets, special }: TokenBytes, id: number, rest: Uint8Array): boolean {
  const start = offsets[id]!;
  if (offsets[id + 1]! - start < rest.length || special[id] === 1) return false;
  for (let i = 0; i < rest.length; i++) if (bytes[start + i] !== rest[i]) return false;
  return true;
}

/**
 * Token healing of one prompt. The texts that continue it may begin at any of its last tokens, with a token
 * that covers the rest of it. Each way has the probability that the model gives its tokens. Choosing token by
 * token from `steps` draws from these ways exactly:
 *
 * Z(at) = P(own at `at`) · Z(at + 1) + Σ P(x at `at`) over the other tokens x that cover the rest, and Z(end)
 * = 1.
 */
export class Healing {
  /** First position that may be chosen again. */
  readonly from: number;
  readonly #tokens: Int32Array;
  readonly #rows: Float32Array[] = [];
  #steps: readonly HealingStep[] | null = null;
  /** Results of the checks so far, in their order. A call that goes on does not repeat them. */
  readonly #checked: boolean[] = [];

  constructor(tokens: Int32Array, from: number) {
    this.#tokens = tokens;
    this.from = from;
  }

  /** Takes the logits of a position from `from` − 1 on, in order; they are copied. */
  add(row: Float32Array): void {
    if (this.#rows.length < this.#tokens.length - this.from) this.#rows.push(row.slice());
  }

  /**
   * @param allows whether a text may begin with the bytes after the prompt; null = with any. If it throws,
   *   the next call goes on there.
   */
  steps(tokenBytes: TokenBytes, allows: ((bytes: Uint8Array) => boolean) | null): readonly HealingStep[] {
    if (this.#steps !== null) return this.#steps;
    const steps: HealingStep[] = [];
    const isAllowed = allows === null ? () => true : this.#checksOf(allows);
    let mass = 1;
    for (let at = this.#tokens.length - 1; at >= this.from; at--) {
      const row = this.#rows[at - this.from]!;
      const promptId = this.#tokens[at]!;
      const rest = restOf(this.#tokens, at, tokenBytes);
      const mask = new Uint32Array(wordsOf(row.length));
      const max = row.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
      let total = 0;
      let covering = 0;
      for (let id = 0; id < row.length; id++) {
        const weight = Math.exp(row[id]! - max);
        total += weight;
        const isOther = id !== promptId && id < tokenBytes.vocabularySize && covers(tokenBytes, id, rest);
        if (!isOther || !isAllowed(bytesOf(tokenBytes, id).subarray(rest.length))) continue;
        covering += weight;
        mask[id >>> 5]! |= 1 << (id & 31);
      }
      const conditioned = row.slice();
      conditioned[promptId]! += Math.log(mass);
      mask[promptId >>> 5]! |= 1 << (promptId & 31);
      mass = (Math.exp(row[promptId]! - max) * mass + covering) / total;
      steps.unshift({ at, promptId, row, conditioned, mask, rest });
    }
    this.#steps = steps;
    return steps;
  }

  #checksOf(allows: (bytes: Uint8Array) => boolean): (bytes: Uint8Array) => boolean {
    const checked = this.#checked;
    let check = 0;
    return (bytes) => {
      if (check === checked.length) checked.push(allows(bytes));
      return checked[check++]!;
    };
  }
}
