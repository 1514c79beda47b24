import {
  type DecodeBatch,
  type EmbeddedImage,
  imagesWithin,
  type PrefillChunk,
} from '../model/model-runner.ts';

/**
 * What one step computes. There are no phases: a sequence has computed positions and total positions, and every step
 * lets the first catch up. Decode rows come first; then one prefill chunk, so that running streams wait for no more
 * than one chunk between two of their tokens, and nothing waits when nobody streams.
 */

/** A prompt being computed, as the choice of the next chunk sees it. */
export interface PrefillCandidate {
  readonly tenantId: string;
}

/**
 * Takes turns between tenants; inside one, the prompt admitted first is finished first. A newcomer goes ahead of those who
 * have had a turn, once.
 */
export class PrefillTurns {
  /** Tenants in the order of their last turn, oldest first, from the first one on that still has something to compute. */
  #turns: readonly string[] = [];

  /** @param candidates in the order of admission */
  next<T extends PrefillCandidate>(candidates: readonly T[]): T | null {
    const first = new Map<string, T>();
    for (const candidate of candidates) {
      if (!first.has(candidate.tenantId)) first.set(candidate.tenantId, candidate);
    }
    const newcomer = [...first.keys()].find((tenant) => !this.#turns.includes(tenant));
    const next = newcomer ?? this.#turns.find((tenant) => first.has(tenant));
    if (next === undefined) {
      this.#turns = [];
      return null;
    }
    // Who has nothing to compute now is remembered while somebody waits who had a turn before: else two tenants that keep
    // coming and going would both be new each time, and go ahead for ever.
    const turns = [...this.#turns.filter((tenant) => tenant !== next), next];
    this.#turns = turns.slice(turns.findIndex((tenant) => first.has(tenant)));
    return first.get(next) ?? null;
  }
}

/** The end of the prefill chunk that starts at `computed`: the next multiple of `chunk`, or the prompt's end. */
function chunkEnd(computed: number, promptLength: number, chunk: number): number {
  return Math.min(promptLength, computed - (computed % chunk) + chunk);
}

export type WantedLogits = 'none' | 'last' | 'all';

/**
 * @param wanted of which prompt positions the request needs logits
 * @param images what stands in the prompt in place of tokens
 */
export function prefillChunk(
  slot: number,
  prompt: Int32Array,
  computed: number,
  chunk: number,
  wanted: WantedLogits,
  images: readonly EmbeddedImage[] = [],
): PrefillChunk {
  const end = chunkEnd(computed, prompt.length, chunk);
  const count = end - computed;
  let logitsAt = new Int32Array(0);
  if (wanted === 'all') logitsAt = Int32Array.from({ length: count }, (_, index) => index);
  else if (wanted === 'last' && end === prompt.length) logitsAt = Int32Array.of(count - 1);
  const run = { slot, start: computed, tokens: prompt.subarray(computed, end), logitsAt };
  return images.length === 0 ? run : { ...run, images: imagesWithin(images, computed, end) };
}

/** A row of the decode batch. */
export interface DecodeRow {
  readonly slot: number;
  /** Tokens whose KV is in the slot = position of the next one. */
  readonly computed: number;
  readonly lastToken: number;
}

/** Fills the batch over the contiguous range of slots that covers all rows; reused from step to step. */
export class DecodeBatchBuilder {
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;
  readonly #minRows: number;

  /** @param minRows idle slots beside the others make up for rows that are missing */
  constructor(slots: number, minRows: number) {
    this.#tokens = new Int32Array(slots);
    this.#positions = new Int32Array(slots);
    this.#minRows = minRows;
  }

  /**
   * @param bySlot the sequence decoding in each slot, or null
   * @param idlePosition where a slot without one may be written without harm
   */
  build(bySlot: readonly (DecodeRow | null)[], idlePosition: (slot: number) => number): DecodeBatch | null {
    const first = bySlot.findIndex((row) => row !== null);
    if (first < 0) return null;
    const last = bySlot.findLastIndex((row) => row !== null);
    const rows = Math.max(this.#minRows, last - first + 1);
    const firstSlot = Math.min(first, bySlot.length - rows);
    for (let row = 0; row < rows; row++) {
      const sequence = bySlot[firstSlot + row] ?? null;
      this.#tokens[row] = sequence === null ? 0 : sequence.lastToken;
      this.#positions[row] = sequence === null ? idlePosition(firstSlot + row) : sequence.computed;
    }
    return { firstSlot, rows, tokens: this.#tokens, positions: this.#positions };
  }
}
