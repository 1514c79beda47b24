import type { KvTensor } from '../../decoder/kv-tensors.ts';
import type { DeviceTensor, Pointer } from '../../ort/bound-tensors.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import { KvStore, type SlotRange, type StoredKv, type StoreSizes, slotBytes } from '../kv-cache.ts';
import type { DeviceRows, KvCopier } from '../kv-copier.ts';

interface KvBuffer extends KvTensor {
  readonly address: Pointer;
  /** Of one slot. */
  readonly slotBytes: number;
}

/** Positions that are filled with zeros at a time. */
const CLEARED_POSITIONS = 256;

/**
 * Keys and values of every slot in device memory. It starts as zeros, because attention multiplies positions
 * after a row's length by zero and must not read NaN there.
 */
export class DeviceKvCache extends KvStore {
  readonly #memory: OrtDeviceMemory;
  readonly #copier: KvCopier;
  readonly #buffers: readonly KvBuffer[];
  /** Buffers of one shape, which are copied together. */
  readonly #groups: readonly (readonly KvBuffer[])[];

  constructor(memory: OrtDeviceMemory, copier: KvCopier, decoder: StoredKv, layout: StoreSizes) {
    super(decoder, layout);
    this.#memory = memory;
    this.#copier = copier;
    this.#buffers = decoder.kv.map((tensor) => {
      const ofSlot = slotBytes(layout, tensor, decoder);
      return { ...tensor, address: memory.allocate(layout.slots * ofSlot), slotBytes: ofSlot };
    });
    this.#groups = groupsOf(this.#buffers);
    this.#clearAll();
  }

  tensors(firstSlot: number, rows: number): DeviceTensor[] {
    return this.#buffers.map((buffer) => this.#tensor(buffer, firstSlot, rows));
  }

  copyTo(target: DeviceKvCache, { slot, start, end }: SlotRange, to: number): void {
    if (start === end) return;
    for (const [index, group] of this.#groups.entries())
      this.#copier.copy(
        this.#rows(group, slot, start),
        target.#rows(target.#groups[index]!, to, start),
        countOf(group, end - start),
      );
  }

  clear(slot: number): void {
    if (this.#copier.clear) this.#copier.clear(this.tensors(slot, 1));
    else this.write(slot, 0, [new Uint8Array(this.layout.contextLength * this.positionBytes)]);
  }

  read(slot: number, start: number, end: number, bytes: Uint8Array): void {
    if (start === end) return;
    this.#eachGroup(bytes, end - start, (group, part) =>
      this.#copier.read(this.#rows(group, slot, start), part, countOf(group, end - start)),
    );
  }

  write(slot: number, start: number, parts: readonly Uint8Array[]): void {
    let first = start;
    for (const bytes of parts) {
      const length = bytes.length / this.positionBytes;
      const from = first;
      this.#eachGroup(bytes, length, (group, part) =>
        this.#copier.write(part, this.#rows(group, slot, from), countOf(group, length)),
      );
      first += length;
    }
  }

  /** Does nothing: device memory is allocated as a whole. */
  discard(): void {}

  #clearAll(): void {
    const { slots, contextLength } = this.layout;
    if (this.#copier.clear) {
      this.#copier.clear(this.tensors(0, slots));
      return;
    }
    for (let start = 0; start < contextLength; start += CLEARED_POSITIONS) {
      const length = Math.min(CLEARED_POSITIONS, contextLength - start);
      this.write(0, start, [new Uint8Array(length * this.positionBytes)]);
    }
    for (let slot = 1; slot < slots; slot++) this.copy(0, slot, contextLength);
  }

  /** Visits the buffers of each shape with their part of `bytes`. */
  #eachGroup(
    bytes: Uint8Array,
    length: number,
    visit: (group: readonly KvBuffer[], part: Uint8Array) => void,
  ): void {
    let at = 0;
    for (const group of this.#groups) {
      const ofPosition = group.reduce((sum, buffer) => sum + buffer.slotBytes / this.layout.contextLength, 0);
      visit(group, bytes.subarray(at, at + length * ofPosition));
      at += length * ofPosition;
    }
  }

  /** Views buffers as matrices with one row per position and head. */
  #rows(group: readonly KvBuffer[], slot: number, start: number): DeviceRows {
    const { slots, contextLength } = this.layout;
    const { heads, headSize } = group[0]!;
    const dimensions = [slots * heads * contextLength, headSize];
    const matrices = group.map((buffer) => ({ ...this.#tensor(buffer, 0, slots), dimensions }));
    return { matrices, first: slot * heads * contextLength + start, stride: contextLength };
  }

  #tensor(buffer: KvBuffer, firstSlot: number, rows: number): DeviceTensor {
    const address = this.#memory.at(buffer.address, firstSlot * buffer.slotBytes);
    return { ...this.describe(buffer, rows), address, memory: this.#memory.info };
  }
}

const countOf = ([first]: readonly KvBuffer[], length: number) => ({ heads: first!.heads, length });

function groupsOf(buffers: readonly KvBuffer[]): KvBuffer[][] {
  const groups = new Map<string, KvBuffer[]>();
  for (const buffer of buffers) {
    const shape = `${buffer.heads} of ${buffer.headSize}`;
    groups.set(shape, [...(groups.get(shape) ?? []), buffer]);
  }
  return [...groups.values()];
}
