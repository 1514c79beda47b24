import type { KvSlots } from '../kv/kv-slots.ts';
import { type KvCopy, MAX_COPIED_CHUNKS } from '../kv/pending-copies.ts';
import type { PrefixStore } from '../kv/prefix-store.ts';
import { takeLogprobs } from '../kv/prompt-logprobs.ts';
import type { SecondTier } from '../kv/second-tier.ts';
import type { SlotStates } from '../kv/state-snapshots.ts';
import type { StoredChunk } from '../kv/stored-chunk.ts';
import type { Submission } from '../messages.ts';
import {
  type OpenRequest,
  prefixNamespace,
  type QueuedSequence,
  storablePositions,
} from '../sequences/open-request.ts';
import { PromptPrefill } from '../sequences/prompt-prefill.ts';

/** Stored chunks of a prompt that are written to its slot. The prompt's `computed` counts them. */
interface Restored {
  /** To be made before: other slots wait for positions that are computed again. */
  readonly copies: readonly KvCopy[];
  /** Writes them. Call it after the copies of the prompt's slot and before the next prefill ends. */
  readonly write: () => void;
  /** Of the last restored position; null if they are not stored. */
  readonly logits: Float32Array | null;
}

const NOTHING_RESTORED: Restored = { copies: [], write: () => undefined, logits: null };

/** Takes what is known of a prompt from the slots and the prefix store, and adds what is computed of it. */
export class PrefixCache {
  readonly #slots: KvSlots;
  readonly #store: PrefixStore | null;
  readonly #disk: SecondTier | null;
  readonly #chunkLength: number;
  readonly #states: SlotStates | null;

  /**
   * @param store keeps prefixes beyond the slots; null = nothing does
   * @param disk the second tier of the store
   * @param chunk positions of a prefill chunk
   * @param states null = slots are their KV
   */
  constructor(
    slots: KvSlots,
    store: PrefixStore | null,
    disk: SecondTier | null,
    chunk: number,
    states: SlotStates | null = null,
  ) {
    this.#slots = slots;
    this.#store = store;
    this.#disk = disk;
    this.#chunkLength = chunk;
    this.#states = states;
  }

  /** Reads stored prefixes of the prompts from the disk; null if there are none. Never rejects. */
  load(submission: Submission, signal: AbortSignal): Promise<void> | null {
    if (this.#store === null || this.#disk === null || !submission.cachePrompt) return null;
    const namespace = prefixNamespace(submission);
    const prompts = submission.prompts.map((prompt) => ({
      namespace,
      tokens: prompt.tokens,
      limit: storablePositions(submission, prompt),
    }));
    return this.#disk.load(this.#store, prompts, signal);
  }

  newPrefill(first: QueuedSequence): PromptPrefill {
    return new PromptPrefill(first, this.#chunkLength, this.#store !== null, this.#states !== null);
  }

  /** Drops what is stored of a request's prompts. */
  drop({ prefixNamespace: namespace, submission }: OpenRequest): void {
    for (const { tokens } of submission.prompts) this.#store?.drop(namespace, tokens);
  }

  /**
   * Gives a prompt its slot, with the longest prefix that a slot has. `restore` adds what the store has.
   * @returns the copies to make, and how many positions both have
   */
  assign(prefill: PromptPrefill): { readonly copies: readonly KvCopy[]; readonly cached: number } {
    const { request, promptIndex, tokens, logprobs, logprobsFrom, storable } = prefill;
    const { prefixNamespace } = request;
    const { images = [] } = request.prompt(promptIndex);
    // Without their pixels, because a cached prefix may outlive the request by days.
    const spans = images.map(({ at, count, key }) => ({ at, count, key }));
    prefill.stored = this.#store?.open(prefixNamespace, tokens, storable) ?? null;
    prefill.storedBefore = positionsOf(prefill.stored?.chunks ?? []);
    const restorable = positionsOf(this.#usableChunks(prefill));
    const wholeChunks = restorable - (restorable % this.#chunkLength);
    // Positions of slots and chunks without logprobs have no logits.
    const usable = logprobs === null ? tokens.length - 1 : Math.max(wholeChunks, logprobsFrom);
    const limit = Math.min(usable, prefill.fixed);
    const { slot, cached, copies } = this.#slots.assign(tokens, prefixNamespace, limit, spans);
    prefill.slot = slot;
    prefill.computed = cached;
    prefill.restores = restorable > cached;
    return { copies, cached: Math.max(cached, restorable) };
  }

  /** Whether a prompt waits for copies: of KV to its slot, or from it to its first choices. */
  waits({ slot, done }: PromptPrefill): boolean {
    return this.#slots.isArriving(slot) || (done && this.#slots.isCopied(slot));
  }

  /** Returns how many sequences of a computed prompt may start in one run without delaying other requests. */
  copiesPerRun({ tokens }: PromptPrefill): number {
    return Math.max(1, Math.floor((MAX_COPIED_CHUNKS * this.#chunkLength) / tokens.length));
  }

  /**
   * Takes the next stored chunks of a prompt that has its slot, as many as may be copied at once. If some are
   * not stored any more, they are computed.
   */
  restore(prefill: PromptPrefill): Restored {
    const { slot, computed } = prefill;
    if (!prefill.restores || this.#slots.isArriving(slot)) return NOTHING_RESTORED;
    const usable = this.#usableChunks(prefill);
    const first = computed / this.#chunkLength;
    const chunks = usable.slice(first, first + MAX_COPIED_CHUNKS);
    prefill.restores = usable.length > first + MAX_COPIED_CHUNKS;
    const kept = Math.min(computed, positionsOf(usable));
    const copies = this.#slots.keepAtMost(slot, kept);
    prefill.computed = kept + positionsOf(chunks);
    this.#slots.record(slot, prefill.computed);
    const state = prefill.restores ? null : (usable.at(-1)?.state ?? null);
    return {
      copies,
      write: () => {
        this.#store?.restore(slot, computed, chunks);
        if (state !== null) this.#states?.write(slot, prefill.computed, state);
      },
      logits: chunks.at(-1)?.logits ?? null,
    };
  }

  /** Returns the stored chunks of a prompt that have what its request wants of them. */
  #usableChunks(prefill: PromptPrefill): readonly StoredChunk[] {
    const usable = this.#wantedChunks(prefill);
    return this.#states === null ? usable : usable.slice(0, 1 + usable.findLastIndex(({ state }) => state));
  }

  #wantedChunks({
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
    const evicted = stored.chunks.findIndex((chunk) => !chunk.stored);
    const all = evicted < 0 ? stored.chunks : stored.chunks.slice(0, evicted);
    if (logprobs !== null && wantsRows) {
      return all.slice(0, Math.floor(Math.min(fixed, logprobsFrom) / this.#chunkLength));
    }
    const chunks = fixed < tokens.length ? all.slice(0, Math.floor(fixed / this.#chunkLength)) : all;
    const usable =
      logprobs === null ? chunks : takeLogprobs(logprobs, tokens, chunks, this.#chunkLength, logprobsFrom);
    const isWhole = usable.length === Math.ceil(tokens.length / this.#chunkLength);
    if (!isWhole || !generates) return usable;
    const hasLogits = wantedLogits === 'last' && usable.at(-1)?.logits !== null;
    return hasLogits ? usable : usable.slice(0, -1);
  }

  /**
   * Notes that a prompt's positions up to `end` are in its slot, and stores the chunks of the run that began
   * at `start`.
   * @param logits of the last position, computed without those of other positions; null if there are none
   */
  record(prefill: PromptPrefill, start: number, end: number, logits: Float32Array | null): void {
    const { slot, logprobs, logprobsFrom, storable, stored } = prefill;
    const isBorder = keepsState(prefill, start, end, this.#chunkLength);
    this.#slots.record(slot, end);
    if (stored === null) return;
    for (let first = start - (start % this.#chunkLength); first < end; first += this.#chunkLength) {
      const last = Math.min(first + this.#chunkLength, end);
      const isWhole = last % this.#chunkLength === 0 || last === prefill.tokens.length;
      if (last > storable || !isWhole) return;
      const hasLogprobs = logprobsFrom === 0 || first > logprobsFrom;
      const states = last === end && isBorder ? this.#states : null;
      const readState = states && ((bytes: Uint8Array) => states.read(slot, end, bytes));
      const lastLogits = last === end ? logits : null;
      this.#store?.add(stored, slot, last, hasLogprobs ? logprobs : null, lastLogits, readState);
    }
  }
}

/**
 * Whether the store keeps the state that a run from `start` to `end` leaves. It keeps that of the prompt's
 * end, those at distances from it that double, and the last one in what other prompts have begun with.
 */
function keepsState(
  { storedBefore, storable }: PromptPrefill,
  start: number,
  end: number,
  chunk: number,
): boolean {
  const next = end + (end - start);
  const scale = (position: number) => Math.ceil(Math.log2((storable - position) / chunk + 1));
  return next > storable || scale(end) !== scale(next) || (end <= storedBefore && next > storedBefore);
}

const positionsOf = (chunks: readonly StoredChunk[]): number =>
  chunks.reduce((sum, { length }) => sum + length, 0);
