import type { DecoderInterface } from '../../decoder/decoder-interface.ts';
import type { KvTensor } from '../../decoder/kv-tensors.ts';
import { ElementType } from '../../onnx/onnx-graph.ts';
import type { DeviceTensor, Pointer, RunBinding } from '../../ort/bound-tensors.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import { elementBytes, type KvLayout, type KvStore, slotBytes } from '../kv-cache.ts';
import type { DeviceRows, KvCopier } from '../kv-copier.ts';

/** Positions [start, end) of a slot. */
interface SlotRange {
  readonly slot: number;
  readonly start: number;
  readonly end: number;
}

interface KvBuffer extends KvTensor {
  readonly address: Pointer;
  /** Of one slot. */
  readonly slotBytes: number;
}

/** Positions that are filled with zeros at a time. */
const CLEARED_POSITIONS = 256;

/**
 * Keys and values of every slot in device memory: one buffer [slots, heads, contextLength, headSize] per
 * layer and kind. It starts as zeros, because attention multiplies positions after a row's length by zero and
 * must not read NaN there.
 */
export class DeviceKvCache implements KvStore {
  readonly #memory: OrtDeviceMemory;
  readonly #copier: KvCopier;
  readonly #decoder: DecoderInterface;
  readonly #layout: KvLayout;
  readonly #buffers: readonly KvBuffer[];
  /** Buffers of one shape, which are copied together. */
  readonly #groups: readonly (readonly KvBuffer[])[];

  constructor(memory: OrtDeviceMemory, copier: KvCopier, decoder: DecoderInterface, layout: KvLayout) {
    this.#memory = memory;
    this.#copier = copier;
    this.#decoder = decoder;
    this.#layout = layout;
    this.#buffers = decoder.kv.map((tensor) => {
      const ofSlot = slotBytes(layout, tensor, decoder);
      return { ...tensor, address: memory.allocate(layout.slots * ofSlot), slotBytes: ofSlot };
    });
    this.#groups = groupsOf(this.#buffers);
    this.#clear();
  }

  get positionBytes(): number {
    return this.#layout.positionBytes;
  }

  bind(binding: RunBinding, firstSlot: number, rows: number): void {
    for (const buffer of this.#buffers) {
      const dimensions = [rows, buffer.heads, this.#layout.contextLength, buffer.headSize];
      binding.inPlace(
        buffer.past,
        [buffer.present, ...buffer.shared],
        this.#tensor(buffer, dimensions, firstSlot),
      );
    }
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.copyTo(this, { slot: from, start, end }, to);
  }

  /** Copies to the same positions of a slot in another cache or this one. */
  copyTo(target: DeviceKvCache, { slot, start, end }: SlotRange, to: number): void {
    if (start === end) return;
    for (const [index, group] of this.#groups.entries())
      this.#copier.copy(
        this.#rows(group, slot, start),
        target.#rows(target.#groups[index]!, to, start),
        countOf(group, end - start),
      );
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

  #clear(): void {
    const { slots, contextLength } = this.#layout;
    if (this.#copier.clear) {
      for (const group of this.#groups) this.#copier.clear(this.#rows(group, 0, 0).matrices);
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
      const ofPosition = group.reduce(
        (sum, buffer) => sum + buffer.slotBytes / this.#layout.contextLength,
        0,
      );
      visit(group, bytes.subarray(at, at + length * ofPosition));
      at += length * ofPosition;
    }
  }

  /** Views buffers as matrices with one row per position and head. */
  #rows(group: readonly KvBuffer[], slot: number, start: number): DeviceRows {
    const { slots, contextLength } = this.#layout;
    const { heads, headSize } = group[0]!;
    const dimensions = [slots * heads * contextLength, headSize];
    const matrices = group.map((buffer) => this.#tensor(buffer, dimensions, 0));
    return { matrices, first: slot * heads * contextLength + start, stride: contextLength };
  }

  #tensor(buffer: KvBuffer, dimensions: readonly number[], firstSlot: number): DeviceTensor {
    return {
      address: this.#memory.at(buffer.address, firstSlot * buffer.slotBytes),
      elementType: ElementType[this.#decoder.kvType],
      elementBytes: elementBytes(this.#decoder),
      dimensions,
      memory: this.#memory.info,
    };
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
