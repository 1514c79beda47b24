import type { StateTensor } from '../decoder/state-tensors.ts';
import type { BoundTensor } from '../ort/bound-tensors.ts';
import {
  type KeptRow,
  rowBytesOf,
  type StateMemory,
  type StatePlace,
  stateTensor,
} from '../runner/state-cache.ts';
import type { GpuMemory, WebGpuSession } from './webgpu-session.ts';

/** States that can be kept at a time, per slot: that of a prompt's end, and one to go back to. */
const KEPT_PER_SLOT = 2;

/** The state of one slot: a buffer per tensor, because a run binds whole buffers. */
type Row = readonly GpuMemory[];

/** The states of all slots in memory of WebGPU, where they stay. */
export class WebGpuStates implements StateMemory {
  readonly #session: WebGpuSession;
  readonly #tensors: readonly StateTensor[];
  /** By place and slot. */
  readonly #places: readonly (readonly Row[])[];
  /** A further one takes the place of the first. */
  readonly #kept: Row[] = [];
  readonly #maxKept: number;
  #keptCount = 0;

  /** @param session owns the memory */
  constructor(session: WebGpuSession, tensors: readonly StateTensor[], slots: number) {
    this.#session = session;
    this.#tensors = tensors;
    this.#places = [0, 1].map(() => Array.from({ length: slots }, () => this.#newRow()));
    this.#maxKept = KEPT_PER_SLOT * slots;
  }

  tensors(place: StatePlace, firstSlot: number, rows: number): BoundTensor[] {
    if (rows !== 1) throw new RangeError(`a run of ${rows} rows, but WebGPU binds one slot`);
    return this.#row(place, firstSlot).map(({ address, memory }, index) => ({
      ...stateTensor(this.#tensors[index]!, rows),
      address,
      memory,
    }));
  }

  clear(place: StatePlace, slot: number): void {
    this.#session.submit((encoder) => {
      for (const { buffer } of this.#row(place, slot)) encoder.clearBuffer(buffer);
    });
  }

  copy(slot: number, from: StatePlace, to: StatePlace): void {
    this.#copy(this.#row(from, slot), this.#row(to, slot));
  }

  keep(place: StatePlace, slot: number): KeptRow {
    const number = this.#keptCount++;
    const kept = (this.#kept[number % this.#maxKept] ??= this.#newRow());
    this.#copy(this.#row(place, slot), kept);
    const isLost = () => this.#keptCount - number > this.#maxKept;
    return {
      get isLost() {
        return isLost();
      },
      restore: (to, into) => {
        if (isLost()) throw new Error('another state has taken its memory');
        this.#copy(kept, this.#row(into, to));
      },
    };
  }

  read(): never {
    throw new Error('the states of WebGPU are not read back');
  }

  write(): never {
    throw new Error('the states of WebGPU are not written');
  }

  #newRow(): Row {
    return this.#tensors.map((tensor) => this.#session.allocate(rowBytesOf(tensor)));
  }

  #row(place: StatePlace, slot: number): Row {
    return this.#places[place]![slot]!;
  }

  /** The device copies before it computes the next run. */
  #copy(from: Row, to: Row): void {
    this.#session.submit((encoder) => {
      for (const [index, tensor] of this.#tensors.entries())
        encoder.copyBufferToBuffer(from[index]!.buffer, 0, to[index]!.buffer, 0, rowBytesOf(tensor));
    });
  }
}
