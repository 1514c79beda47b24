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

  /** @param memory `scoreBytes` for each position */
  constructor(positions: number, top: number, memory?: ArrayBufferLike) {
    const buffer = memory ?? new ArrayBuffer(positions * scoreBytes(top));
    this.top = top;
    this.#logprobs = new Float32Array(buffer, 0, positions);
    this.#topLogprobs = new Float32Array(buffer, 4 * positions, positions * top);
    this.#topIds = new Int32Array(buffer, 4 * positions * (1 + top), positions * top);
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

export interface ChunkScores {
  /** Of the chunk's positions and of the one after it; valid if `scored`. */
  readonly scores: TokenScores;
  readonly scored: boolean;
  /** The token after the chunk whose score is the last one; −1 if that one is not valid. */
  readonly next: number;
}

/**
 * Takes the stored logprobs of a prompt's tokens after `scoredFrom`. Returns the chunks that need not be computed: those
 * before it, and those with logprobs. The logprob of the token after them comes from the logits of their last position. If
 * it is not known, that chunk is computed again.
 */
export function takeScores<Chunk extends ChunkScores>(
  scores: TokenScores,
  tokens: Int32Array,
  chunks: readonly Chunk[],
  chunkLength: number,
  scoredFrom: number,
): readonly Chunk[] {
  const first = Math.floor(scoredFrom / chunkLength);
  const unscored = chunks.findIndex(({ scored }, index) => index >= first && !scored);
  const usable = unscored < 0 ? chunks : chunks.slice(0, unscored);
  for (let index = first; index < usable.length; index++) {
    scores.copy(usable[index]!.scores, 0, chunkLength, index * chunkLength);
  }
  if (usable.length <= first) return usable;
  const after = usable.length * chunkLength;
  const score = scoreAfter(usable.at(-1)!, tokens[after]!, chunkLength);
  if (score === null) return usable.slice(0, -1);
  scores.set(after, score);
  return usable;
}

/** Returns the score of a token after a chunk, if the chunk's own next token or its most likely ones include it. */
function scoreAfter(chunk: ChunkScores, id: number, chunkLength: number): TokenLogprobs | null {
  if (chunk.next < 0) return null;
  const known = chunk.scores.get(chunkLength, chunk.scores.top);
  if (chunk.next === id) return known;
  const likely = known.top.find(([other]) => other === id);
  return likely === undefined ? null : { logprob: likely[1], top: known.top };
}
