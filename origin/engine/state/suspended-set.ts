import type { KvSlots } from '../kv/kv-slots.ts';
import type { KvCopy } from '../kv/pending-copies.ts';
import type { ChunkMemory } from '../kv/prefix-memory.ts';
import type { PrefixStore } from '../kv/prefix-store.ts';
import type { SlotPrompt } from '../kv/slot.ts';
import type { SlotStates } from '../kv/state-snapshots.ts';
import type { OpenRequest, QueuedSequence } from '../sequences/open-request.ts';
import { PromptPrefill } from '../sequences/prompt-prefill.ts';
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
  /** Null if the slot had none. */
  readonly slotState: Uint8Array | null;
}

/** The KV of one sequence could not be moved. Other sequences are not affected. */
export class KvMoveFailure extends Error {
  override readonly name = 'KvMoveFailure';
}

/** Sequences that gave up their slot. Their KV waits in the prefix store; everything else stays with them. */
export class SuspendedSet {
  readonly #kv: KvSlots;
  readonly #store: PrefixStore | null;
  readonly #states: SlotStates | null;
  readonly #sequences = new Map<QueuedSequence, Suspended>();
  /** Positions whose KV has been moved so far, to main memory or back. */
  movedPositions = 0;
  #suspensions = 0;

  /** @param states null = slots are their KV */
  constructor(kv: KvSlots, store: PrefixStore | null, states: SlotStates | null = null) {
    this.#kv = kv;
    this.#store = store;
    this.#states = states;
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

  /** Whether a slot has a state to save. It gets that of a stored prefix with the last of its chunks. */
  #hasState(state: Sequence | PromptPrefill): boolean {
    if (this.#states === null || state.computed === 0) return false;
    return !(state instanceof PromptPrefill && state.restores);
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
      const { slot, computed } = state;
      const slotState = this.#hasState(state) ? (this.#store?.states.take() ?? null) : null;
      if (slotState === null && this.#hasState(state)) return false;
      const memory = moved(() => this.#store?.saved.save(slot, computed) ?? null);
      if (memory === null) {
        if (slotState !== null) this.#store?.states.give(slotState);
        return false;
      }
      if (slotState !== null) this.#states?.read(slot, computed, slotState);
      this.movedPositions += state.computed;
      const prompt = this.#kv.suspend(state.slot, queued.request.submission.cachePrompt);
      state.slot = -1;
      this.#sequences.set(queued, { state, kv: { prompt, memory, slotState } });
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
      if (kv.slotState !== null) this.#states?.write(slot, state.computed, kv.slotState);
    } catch (error) {
      this.#kv.release(slot, false);
      throw error;
    } finally {
      if (kv.slotState !== null) this.#store?.states.give(kv.slotState);
    }
    state.slot = slot;
    return state;
  }

  /** Removes a request's sequences. */
  remove(request: OpenRequest): void {
    for (const queued of this.sequences) {
      if (queued.request !== request) continue;
      const { kv } = this.#sequences.get(queued)!;
      this.#store?.saved.free(kv?.memory ?? []);
      if (kv?.slotState) this.#store?.states.give(kv.slotState);
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
