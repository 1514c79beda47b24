import type { TokenLogprobs } from '../../sampling/logprobs.ts';

/** Logprobs of consecutive prompt positions: of the token itself, and the most likely ones in its place. */
export class PromptLogprobs {
  /** Most likely tokens kept per position. */
  readonly top: number;
  /** All of them, as one block of memory. */
  readonly bytes: Uint8Array;
  readonly #logprobs: Float32Array;
  /** [positions, top], best first. */
  readonly #topLogprobs: Float32Array;
  /** As `#topLogprobs`; −1 beyond the end of the vocabulary. */
  readonly #topIds: Int32Array;
  readonly #ranks: Int32Array;
  /** The first of the positions. */
  readonly first: number;

  /**
   * @param memory `logprobBytes` for each position
   * @param first the first of the positions
   */
  constructor(positions: number, top: number, memory?: ArrayBufferLike, first = 0) {
    const buffer = memory ?? new ArrayBuffer(positions * logprobBytes(top));
    this.top = top;
    this.first = first;
    this.bytes = new Uint8Array(buffer, 0, positions * logprobBytes(top));
    this.#logprobs = new Float32Array(buffer, 0, positions);
    this.#topLogprobs = new Float32Array(buffer, 4 * positions, positions * top);
    this.#topIds = new Int32Array(buffer, 4 * positions * (1 + top), positions * top);
    this.#ranks = new Int32Array(buffer, 4 * positions * (1 + 2 * top), positions);
  }

  /** @param score with its rank */
  set(position: number, { logprob, top, rank = 0 }: TokenLogprobs): void {
    const at = position - this.first;
    this.#logprobs[at] = logprob;
    this.#ranks[at] = rank;
    for (let place = 0; place < this.top; place++) {
      const [id, value] = top[place] ?? [-1, 0];
      this.#topIds[at * this.top + place] = id;
      this.#topLogprobs[at * this.top + place] = value;
    }
  }

  /** @param count most likely tokens to return, at most `top` */
  get(position: number, count: number): TokenLogprobs {
    const top: [number, number][] = [];
    const first = (position - this.first) * this.top;
    for (let at = first; at < first + count && this.#topIds[at]! >= 0; at++) {
      top.push([this.#topIds[at]!, this.#topLogprobs[at]!]);
    }
    const index = position - this.first;
    return { logprob: this.#logprobs[index]!, top, rank: this.#ranks[index]! };
  }

  /** Copies positions [start, end) of other logprobs with the same `top` to positions from `to` on. */
  copy(from: PromptLogprobs, start: number, end: number, to: number): void {
    const { top } = this;
    const [first, last, at] = [start - from.first, end - from.first, to - this.first];
    this.#logprobs.set(from.#logprobs.subarray(first, last), at);
    this.#ranks.set(from.#ranks.subarray(first, last), at);
    this.#topLogprobs.set(from.#topLogprobs.subarray(first * top, last * top), at * top);
    this.#topIds.set(from.#topIds.subarray(first * top, last * top), at * top);
  }
}

/** Returns the bytes of one position. */
export const logprobBytes = (top: number): number => 8 + 8 * top;

/** Logprobs of the positions of a chunk of a prefill, and of the token after it. */
export interface ChunkLogprobs {
  readonly length: number;
  /** Valid if `hasLogprobs`. */
  readonly logprobs: PromptLogprobs;
  readonly hasLogprobs: boolean;
  /** The token after the chunk whose logprob is the last one; −1 if that one is not valid. */
  readonly next: number;
}

/**
 * Takes the stored logprobs of a prompt's tokens after `logprobsFrom`. Returns the chunks that need not be
 * computed: those before it, and those with logprobs. The logprob of the token after them comes from the
 * logits of their last position. If it is not known, that chunk is computed again.
 */
export function takeLogprobs<Chunk extends ChunkLogprobs>(
  logprobs: PromptLogprobs,
  tokens: Int32Array,
  chunks: readonly Chunk[],
  chunkLength: number,
  logprobsFrom: number,
): readonly Chunk[] {
  const first = Math.floor(logprobsFrom / chunkLength);
  const missing = chunks.findIndex(({ hasLogprobs }, index) => index >= first && !hasLogprobs);
  const usable = missing < 0 ? chunks : chunks.slice(0, missing);
  for (let index = first; index < usable.length; index++) {
    const { logprobs: stored, length } = usable[index]!;
    logprobs.copy(stored, 0, length, index * chunkLength);
  }
  const last = usable.at(-1);
  if (last === undefined || usable.length <= first) return usable;
  const next = tokens[(usable.length - 1) * chunkLength + last.length];
  if (next === undefined) return usable;
  const after = logprobsAfter(last, next);
  if (after === null) return usable.slice(0, -1);
  logprobs.set(usable.length * chunkLength, after);
  return usable;
}

/** Returns the logprobs of a token after a chunk, if it is the chunk's own next token or a likely one. */
function logprobsAfter({ logprobs, next, length }: ChunkLogprobs, id: number): TokenLogprobs | null {
  if (next < 0) return null;
  const stored = logprobs.get(length, logprobs.top);
  if (next === id) return stored;
  const place = stored.top.findIndex(([listed]) => listed === id);
  return place < 0 ? null : { logprob: stored.top[place]![1], top: stored.top, rank: place + 1 };
}
