import type { KvCopy, KvSlots } from './kv/kv-slots.ts';
import type { PrefixStore } from './kv/prefix-store.ts';
import { takeLogprobs } from './kv/prompt-logprobs.ts';
import type { StoredChunk } from './kv/stored-chunk.ts';
import type { PromptPrefill } from './prompt-prefill.ts';

/** The slot of a prompt in prefill. The prompt's `computed` counts what is restored. */
export interface PrefillSlot {
  readonly copies: readonly KvCopy[];
  /** Writes what the store has. Call it after the copies and before the next prefill ends. */
  readonly restore: () => void;
  /** Of the last restored position; null if they are not stored. */
  readonly logits: Float32Array | null;
}

/** Takes what is known of a prompt from the slots and the prefix store, and adds what is computed of it. */
export class PrefixCache {
  readonly #slots: KvSlots;
  readonly #store: PrefixStore | null;
  readonly #chunkLength: number;

  /** @param chunk positions of a prefill chunk */
  constructor(slots: KvSlots, store: PrefixStore | null, chunk: number) {
    this.#slots = slots;
    this.#store = store;
    this.#chunkLength = chunk;
  }

  /** Gives a prompt its slot, with the longest prefix that a slot or the store has. */
  assign(prefill: PromptPrefill): PrefillSlot {
    const { request, promptIndex, tokens, logprobs, logprobsFrom, storable } = prefill;
    const { prefixNamespace } = request;
    const { images = [] } = request.prompt(promptIndex);
    // Without their pixels, because a cached prefix may outlive the request by days.
    const spans = images.map(({ at, count, key }) => ({ at, count, key }));
    prefill.stored = this.#store?.open(prefixNamespace, tokens, storable) ?? null;
    const chunks = this.#usableChunks(prefill);
    const restorable = chunks.reduce((sum, { length }) => sum + length, 0);
    const wholeChunks = restorable - (restorable % this.#chunkLength);
    // Positions of slots and chunks without logprobs have no logits.
    const known = logprobs === null ? tokens.length - 1 : Math.max(wholeChunks, logprobsFrom);
    const limit = Math.min(known, prefill.fixed);
    const { slot, cached, copies, restoredFrom } = this.#slots.assign(
      tokens,
      prefixNamespace,
      limit,
      spans,
      wholeChunks,
    );
    prefill.slot = slot;
    prefill.computed = Math.max(cached, restorable);
    const missing = chunks.slice(restoredFrom / this.#chunkLength);
    return {
      copies,
      restore: () => this.#store?.restore(slot, restoredFrom, missing),
      logits: chunks.at(-1)?.logits ?? null,
    };
  }

  /** Returns the stored chunks of a prompt that have what its request wants of them. */
  #usableChunks({
    tokens,
    logprobs,
    logprobsFrom,
    stored,
    wantedLogits,
    wantsRows,
    generates,
    fixed,
  }: PromptPrefill): readonly StoredChunk[] {
    if (stored === null) return [];
    if (logprobs !== null && wantsRows) {
      return stored.chunks.slice(0, Math.floor(Math.min(fixed, logprobsFrom) / this.#chunkLength));
    }
    const chunks =
      fixed < tokens.length ? stored.chunks.slice(0, Math.floor(fixed / this.#chunkLength)) : stored.chunks;
    const usable =
      logprobs === null ? chunks : takeLogprobs(logprobs, tokens, chunks, this.#chunkLength, logprobsFrom);
    const isWhole = usable.length === Math.ceil(tokens.length / this.#chunkLength);
    if (!isWhole || !generates) return usable;
    const hasLogits = wantedLogits === 'last' && usable.at(-1)?.logits !== null;
    return hasLogits ? usable : usable.slice(0, -1);
  }

  /**
   * Notes that a prompt's positions up to `end` are in its slot, and stores the chunks of the run that began at `start`.
   * @param logits of the last position, computed without those of other positions; null if there are none
   */
  record(prefill: PromptPrefill, start: number, end: number, logits: Float32Array | null): void {
    const { slot, logprobs, logprobsFrom, storable, stored } = prefill;
    this.#slots.record(slot, end);
    if (stored === null) return;
    for (let first = start - (start % this.#chunkLength); first < end; first += this.#chunkLength) {
      const last = Math.min(first + this.#chunkLength, end);
      if (last > storable) return;
      const hasLogprobs = logprobsFrom === 0 || first > logprobsFrom;
      this.#store?.add(stored, slot, last, hasLogprobs ? logprobs : null, last === end ? logits : null);
    }
  }
}
