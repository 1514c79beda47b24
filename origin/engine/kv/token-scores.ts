import type { TokenLogprobs } from '../../sampling/logprobs.ts';

/** Logprobs of consecutive prompt positions: of the token itself, and of the most likely ones in its place. */
export class TokenScores {
  /** Most likely tokens kept per position. */
  readonly top: number;
  readonly #logprobs: Float32Array;
  /** [positions, top], best first. */
  readonly #topLogprobs: Float32Array;
  /** As `#topLogprobs`; −1 beyond the end of the vocabulary. */
  readonly #topIds: Int32Array;

  constructor(positions: number, top: number) {
    this.top = top;
    this.#logprobs = new Float32Array(positions);
    this.#topLogprobs = new Float32Array(positions * top);
    this.#topIds = new Int32Array(positions * top);
  }

  set(position: number, { logprob, top }: TokenLogprobs): void {
    this.#logprobs[position] = logprob;
    for (let rank = 0; rank < this.top; rank++) {
      const [id, value] = top[rank] ?? [-1, 0];
      this.#topIds[position * this.top + rank] = id;
      this.#topLogprobs[position * this.top + rank] = value;
    }
  }

  /** @param count most likely tokens to return, at most `top` */
  get(position: number, count: number): TokenLogprobs {
    const top: [number, number][] = [];
    const first = position * this.top;
    for (let at = first; at < first + count && this.#topIds[at]! >= 0; at++) {
      top.push([this.#topIds[at]!, this.#topLogprobs[at]!]);
    }
    return { logprob: this.#logprobs[position]!, top };
  }

  /** Copies positions [start, end) of other scores with the same `top` to positions from `to` on. */
  copy(from: TokenScores, start: number, end: number, to: number): void {
    const { top } = this;
    this.#logprobs.set(from.#logprobs.subarray(start, end), to);
    this.#topLogprobs.set(from.#topLogprobs.subarray(start * top, end * top), to * top);
    this.#topIds.set(from.#topIds.subarray(start * top, end * top), to * top);
  }
}

/** Returns the bytes of one position. */
export const scoreBytes = (top: number): number => 4 + 8 * top;

/**
 * Takes the stored logprobs of a prompt's tokens after `scoredFrom`. Returns the chunks that need not be computed: those
 * before it, and those with logprobs. The last one with logprobs is computed again, because the logprob of the next token
 * comes from its logits.
 */
export function takeScores<Chunk extends { readonly scores: TokenScores; readonly scored: boolean }>(
  scores: TokenScores,
  chunks: readonly Chunk[],
  chunkLength: number,
  scoredFrom: number,
): readonly Chunk[] {
  const first = Math.floor(scoredFrom / chunkLength);
  const unscored = chunks.findIndex(({ scored }, index) => index >= first && !scored);
  const end = unscored < 0 ? chunks.length : unscored;
  for (let index = first; index < end; index++) {
    scores.copy(chunks[index]!.scores, 0, chunkLength, index * chunkLength);
  }
  return chunks.slice(0, Math.max(Math.min(first, end), end - 1));
}
