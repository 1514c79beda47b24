import type { KvCopy, KvSlots } from './kv/kv-slots.ts';
import type { PrefixStore } from './kv/prefix-store.ts';
import type { StoredRun } from './kv/stored-run.ts';
import { takeScores } from './kv/token-scores.ts';
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
  readonly #chunk: number;

  /** @param chunk positions of a prefill chunk */
  constructor(slots: KvSlots, store: PrefixStore | null, chunk: number) {
    this.#slots = slots;
    this.#store = store;
    this.#chunk = chunk;
  }

  /** Gives a prompt its slot, with the longest prefix that a slot or the store has. */
  assign(prefill: PromptPrefill): PrefillSlot {
    const { request, promptIndex, tokens, scores, scoredFrom, storable } = prefill;
    const { cacheNamespace } = request;
    const { images = [] } = request.prompt(promptIndex);
    // Without their pixels, because a cached prefix may outlive the request by days.
    const spans = images.map(({ at, count, key }) => ({ at, count, key }));
    prefill.stored = this.#store?.open(cacheNamespace, tokens, storable) ?? null;
    const runs = this.#usableRuns(prefill);
    const restorable = runs.reduce((sum, { length }) => sum + length, 0);
    const chunks = restorable - (restorable % this.#chunk);
    // Positions of slots and chunks without scores have no logits.
    const limit = scores === null ? tokens.length - 1 : Math.max(chunks, scoredFrom);
    const { slot, cached, copies, restoredFrom } = this.#slots.assign(
      tokens,
      cacheNamespace,
      limit,
      spans,
      chunks,
    );
    prefill.slot = slot;
    prefill.computed = Math.max(cached, restorable);
    const missing = runs.slice(restoredFrom / this.#chunk);
    return {
      copies,
      restore: () => this.#store?.restore(slot, restoredFrom, missing),
      logits: runs.at(-1)?.logits ?? null,
    };
  }

  /** Returns the stored runs of a prompt that have what its request wants of them. */
  #usableRuns({
    tokens,
    scores,
    scoredFrom,
    stored,
    wantedLogits,
    generates,
  }: PromptPrefill): readonly StoredRun[] {
    if (stored === null) return [];
    const { runs } = stored;
    const usable = scores === null ? runs : takeScores(scores, tokens, runs, this.#chunk, scoredFrom);
    const isWhole = usable.length === Math.ceil(tokens.length / this.#chunk);
    if (!isWhole || !generates) return usable;
    const hasLogits = wantedLogits === 'last' && usable.at(-1)?.logits !== null;
    return hasLogits ? usable : usable.slice(0, -1);
  }

  /**
   * Notes that a prompt's positions up to `end` are in its slot, and stores the run that ends there.
   * @param logits of the last position, computed without those of other positions; null if there are none
   */
  record(prefill: PromptPrefill, end: number, logits: Float32Array | null): void {
    const { slot, scores, scoredFrom, storable, stored } = prefill;
    this.#slots.record(slot, end);
    if (stored === null || end > storable) return;
    const start = end - 1 - ((end - 1) % this.#chunk);
    const isScored = scoredFrom === 0 || start > scoredFrom;
    this.#store?.add(stored, slot, end, isScored ? scores : null, logits);
  }
}
