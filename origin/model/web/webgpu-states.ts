import type { StateTensor } from '../decoder/state-tensors.ts';
import type { KvStore } from '../runner/kv-cache.ts';
import { type KeptRow, StateMemory, type StatePlace, stateOf } from '../runner/state-cache.ts';
import { WebGpuKvCache } from './webgpu-kv-cache.ts';
import type { WebGpuSession } from './webgpu-session.ts';

/** States that can be kept at a time, per slot: that of a prompt's end, and one to go back to. */
const KEPT_PER_SLOT = 2;

/** The states of all slots in memory of WebGPU, where they stay, also those that are kept. */
export class WebGpuStates extends StateMemory {
  /** A further one takes the place of the first. */
  readonly #kept: KvStore[] = [];
  readonly #maxKept: number;
  #keptCount = 0;

  /** @param session owns the memory */
  constructor(session: WebGpuSession, tensors: readonly StateTensor[], slots: number) {
    super(tensors, slots, (decoder, layout) => new WebGpuKvCache(session, decoder, layout));
    this.#maxKept = KEPT_PER_SLOT * slots;
  }

  override keep(place: StatePlace, slot: number): KeptRow {
    const number = this.#keptCount++;
    const kept = (this.#kept[number % this.#maxKept] ??= this.newStore(1));
    this.store(place).copyTo(kept, stateOf(slot), 0);
    const isLost = () => this.#keptCount - number > this.#maxKept;
    return {
      get isLost() {
        return isLost();
      },
      restore: (to, into) => {
        if (isLost()) throw new Error('another state has taken its memory');
        kept.copyTo(this.store(into), stateOf(0), to);
      },
    };
  }
}
