import type { KvSlots } from '../kv/kv-slots.ts';
import type { KvCopy } from '../kv/pending-copies.ts';
import type { ChunkMemory } from '../kv/prefix-memory.ts';
import type { PrefixStore } from '../kv/prefix-store.ts';
import type { SlotPrompt } from '../kv/slot.ts';
import type { OpenRequest, QueuedSequence } from '../sequences/open-request.ts';
import type { PromptPrefill } from '../sequences/prompt-prefill.ts';
import type { Sequence } from '../sequences/sequence.ts';

/** What a suspended sequence was: decoding, alone in its prompt's prefill, null = about to join one. */
export type SuspendedState = Sequence | PromptPrefill | null;

interface Suspended {
  readonly state: SuspendedState;
  /** Null if it had no slot yet. */
  readonly kv: SavedKv | null;
}

interface SavedKv {
  readonly prompt: SlotPrompt;
  readonly memory: readonly ChunkMemory[];
}

/** The KV of one sequence could not be moved. Other sequences are not affected. */
export class KvMoveFailure extends Error {
  override readonly name = 'KvMoveFailure';
}

/** Sequences that gave up their slot. Their KV waits in the prefix store; everything else stays with them. */
export class SuspendedSet {
  readonly #kv: KvSlots;
  readonly #store: PrefixStore | null;
  readonly #sequences = new Map<QueuedSequence, Suspended>();
  /** Positions whose KV has been moved so far, to main memory or back. */
  movedPositions = 0;
  #suspensions = 0;

  constructor(kv: KvSlots, store: PrefixStore | null) {
    this.#kv = kv;
    this.#store = store;
  }

  get sequences(): readonly QueuedSequence[] {
    return [...this.#sequences.keys()];
  }

  get size(): number {
    return this.#sequences.size;
  }

  /** How often `add` has succeeded. */
  get suspensions(): number {
    return this.#suspensions;
  }

  /** True if main memory holds exactly the KV of the suspended sequences. */
  get holdsItsMemory(): boolean {
    let chunks = 0;
    for (const { kv } of this.#sequences.values()) chunks += kv?.memory.length ?? 0;
    return chunks === (this.#store?.saved.chunks ?? 0);
  }

  /**
   * Saves the KV of a sequence and frees its slot.
   * @returns false if there is no memory for it, or if its KV is still being copied to its slot; nothing has
   *   changed then
   * @throws KvMoveFailure if the KV cannot be read; nothing has changed then
   */
  add(queued: QueuedSequence, state: SuspendedState): boolean {
    if (state === null || state.slot < 0) this.#sequences.set(queued, { state, kv: null });
    else {
      if (this.#kv.isArriving(state.slot)) return false;
      const memory = moved(() => this.#store?.saved.save(state.slot, state.computed) ?? null);
      if (memory === null) return false;
      this.movedPositions += state.computed;
      const prompt = this.#kv.suspend(state.slot, queued.request.submission.cachePrompt);
      state.slot = -1;
      this.#sequences.set(queued, { state, kv: { prompt, memory } });
    }
    this.#suspensions++;
    return true;
  }

  /**
   * Removes a sequence and writes its KV to a new slot.
   * @param copy makes KV copies at once
   * @returns undefined if it is not suspended
   * @throws KvMoveFailure if the KV cannot be written; the sequence is lost then
   */
  take(queued: QueuedSequence, copy: (copies: readonly KvCopy[]) => void): SuspendedState | undefined {
    const suspended = this.#sequences.get(queued);
    if (suspended === undefined) return undefined;
    this.#sequences.delete(queued);
    const { state, kv } = suspended;
    if (state === null || kv === null) return state;
    const { slot, copies } = this.#kv.resume(kv.prompt);
    copy(copies);
    this.movedPositions += state.computed;
    try {
      moved(() => this.#store!.saved.writeBack(slot, kv.memory, state.computed));
    } catch (error) {
      this.#kv.release(slot, false);
      throw error;
    }
    state.slot = slot;
    return state;
  }

  /** Removes a request's sequences. */
  remove(request: OpenRequest): void {
    for (const queued of this.sequences) {
      if (queued.request !== request) continue;
      this.#store?.saved.free(this.#sequences.get(queued)!.kv?.memory ?? []);
      this.#sequences.delete(queued);
    }
  }
}

function moved<T>(move: () => T): T {
  try {
    return move();
  } catch (cause) {
    throw new KvMoveFailure('the KV of a sequence could not be moved', { cause });
  }
}
