import type { StateTensor } from '../../decoder/state-tensors.ts';
import type { DeviceTensor, Pointer } from '../../ort/bound-tensors.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { DeviceRows, KvCopier } from '../kv-copier.ts';
import {
  bytesOfState,
  type KeptRow,
  keepInMainMemory,
  rowBytesOf,
  type StateMemory,
  type StatePlace,
  stateTensor,
} from '../state-cache.ts';

interface StateBuffer {
  readonly tensor: StateTensor;
  /** Of each place. */
  readonly addresses: readonly [Pointer, Pointer];
}

const ONE_ROW = { heads: 1, length: 1 };

/** The states of all slots in device memory: a buffer [slots, …dimensions] per tensor and place. */
export class DeviceStates implements StateMemory {
  readonly #memory: OrtDeviceMemory;
  readonly #copier: KvCopier;
  readonly #slots: number;
  /** Of one slot. */
  readonly #bytes: number;
  readonly #buffers: readonly StateBuffer[];
  /** Buffers with rows of one size, which are copied together. */
  readonly #groups: readonly (readonly StateBuffer[])[];

  constructor(memory: OrtDeviceMemory, copier: KvCopier, tensors: readonly StateTensor[], slots: number) {
    this.#memory = memory;
    this.#copier = copier;
    this.#slots = slots;
    this.#bytes = bytesOfState(tensors);
    this.#buffers = tensors.map((tensor) => {
      const allocate = () => memory.allocate(slots * rowBytesOf(tensor));
      return { tensor, addresses: [allocate(), allocate()] };
    });
    this.#groups = [...Map.groupBy(this.#buffers, ({ tensor }) => rowBytesOf(tensor)).values()];
    // Every slot has the state of position 0, in the first place.
    for (let slot = 0; slot < slots; slot++) this.clear(0, slot);
  }

  tensors(place: StatePlace, firstSlot: number, rows: number): DeviceTensor[] {
    return this.#buffers.map((buffer) => ({
      ...stateTensor(buffer.tensor, rows),
      address: this.#memory.at(buffer.addresses[place], firstSlot * rowBytesOf(buffer.tensor)),
      memory: this.#memory.info,
    }));
  }

  clear(place: StatePlace, slot: number): void {
    if (this.#copier.clear) this.#copier.clear(this.tensors(place, slot, 1));
    else this.write(place, slot, new Uint8Array(this.#bytes));
  }

  copy(slot: number, from: StatePlace, to: StatePlace): void {
    for (const group of this.#groups)
      this.#copier.copy(this.#rows(group, from, slot), this.#rows(group, to, slot), ONE_ROW);
  }

  /** Keeps it in main memory, which has room for more of them. */
  keep(place: StatePlace, slot: number): KeptRow {
    return keepInMainMemory(this, this.#bytes, place, slot);
  }

  read(place: StatePlace, slot: number, bytes: Uint8Array): void {
    this.#eachGroup(bytes, (group, part) => this.#copier.read(this.#rows(group, place, slot), part, ONE_ROW));
  }

  write(place: StatePlace, slot: number, bytes: Uint8Array): void {
    this.#eachGroup(bytes, (group, part) =>
      this.#copier.write(part, this.#rows(group, place, slot), ONE_ROW),
    );
  }

  /** Visits the buffers of each size with their part of `bytes`. */
  #eachGroup(bytes: Uint8Array, visit: (group: readonly StateBuffer[], part: Uint8Array) => void): void {
    let at = 0;
    for (const group of this.#groups) {
      const length = group.length * rowBytesOf(group[0]!.tensor);
      visit(group, bytes.subarray(at, at + length));
      at += length;
    }
  }

  /** Views buffers as matrices with a row per slot. */
  #rows(group: readonly StateBuffer[], place: StatePlace, slot: number): DeviceRows {
    const matrices = group.map(({ tensor, addresses }): DeviceTensor => {
      const { elementType, elementBytes } = stateTensor(tensor, 1);
      const dimensions = [this.#slots, rowBytesOf(tensor) / elementBytes];
      const [address, memory] = [addresses[place], this.#memory.info];
      return { address, elementType, elementBytes, dimensions, memory };
    });
    return { matrices, first: slot, stride: this.#slots };
  }
}
