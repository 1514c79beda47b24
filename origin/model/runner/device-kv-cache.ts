import { ElementType } from '../onnx/onnx-graph.ts';
import type { DeviceTensor, OrtBinding } from '../ort/ort-binding.ts';
import type { Pointer } from '../ort/ort-capi.ts';
import type { OrtDeviceMemory } from '../ort/ort-device.ts';
import type { DecoderInterface } from './decoder-interface.ts';
import { bufferBytes, elementBytes, type KvLayout, type KvStore } from './kv-cache.ts';
import type { DeviceRows, KvCopier } from './kv-copier.ts';

/** Positions [start, end) of a slot. */
interface SlotRange {
  readonly slot: number;
  readonly start: number;
  readonly end: number;
}

/** Positions that are filled with zeros at a time. */
const CLEARED_POSITIONS = 256;

/**
 * Keys and values of every slot in device memory: one buffer [slots, kvHeads, contextLength, headSize] per
 * layer and kind. It starts as zeros, because attention multiplies positions after a row's length by zero and
 * must not read NaN there.
 */
export class DeviceKvCache implements KvStore {
  readonly #memory: OrtDeviceMemory;
  readonly #copier: KvCopier;
  readonly #decoder: DecoderInterface;
  readonly #layout: KvLayout;
  readonly #buffers: readonly Pointer[];

  constructor(memory: OrtDeviceMemory, copier: KvCopier, decoder: DecoderInterface, layout: KvLayout) {
    this.#memory = memory;
    this.#copier = copier;
    this.#decoder = decoder;
    this.#layout = layout;
    this.#buffers = decoder.kv.map(() => memory.allocate(bufferBytes(layout, decoder)));
    this.#clear();
  }

  get positionBytes(): number {
    return this.#layout.positionBytes;
  }

  bind(binding: OrtBinding, firstSlot: number, rows: number): void {
    const { kv, kvHeads, headSize } = this.#decoder;
    const { contextLength, positionBytes } = this.#layout;
    const offset = (firstSlot * contextLength * positionBytes) / this.#buffers.length;
    for (const [index, { past, present }] of kv.entries()) {
      const dimensions = [rows, kvHeads, contextLength, headSize];
      binding.inPlace(past, present, this.#tensor(index, dimensions, offset));
    }
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.copyTo(this, { slot: from, start, end }, to);
  }

  /** Copies to the same positions of a slot in another cache or this one. */
  copyTo(other: DeviceKvCache, { slot, start, end }: SlotRange, to: number): void {
    if (start === end) return;
    this.#copier.copy(this.#rows(slot, start), other.#rows(to, start), this.#count(end - start));
  }

  read(slot: number, start: number, end: number, bytes: Uint8Array): void {
    if (start === end) return;
    this.#copier.read(this.#rows(slot, start), bytes, this.#count(end - start));
  }

  write(slot: number, start: number, parts: readonly Uint8Array[]): void {
    let first = start;
    for (const bytes of parts) {
      const length = bytes.length / this.positionBytes;
      this.#copier.write(bytes, this.#rows(slot, first), this.#count(length));
      first += length;
    }
  }

  /** Does nothing: device memory is allocated as a whole. */
  discard(): void {}

  #clear(): void {
    const { slots, contextLength } = this.#layout;
    for (let start = 0; start < contextLength; start += CLEARED_POSITIONS) {
      const length = Math.min(CLEARED_POSITIONS, contextLength - start);
      this.write(0, start, [new Uint8Array(length * this.positionBytes)]);
    }
    for (let slot = 1; slot < slots; slot++) this.copy(0, slot, contextLength);
  }

  /** Views the buffers as matrices with one row per position and head. */
  #rows(slot: number, start: number): DeviceRows {
    const { kvHeads, headSize } = this.#decoder;
    const { slots, contextLength } = this.#layout;
    const dimensions = [slots * kvHeads * contextLength, headSize];
    const matrices = this.#buffers.map((_, index) => this.#tensor(index, dimensions, 0));
    return { matrices, first: slot * kvHeads * contextLength + start, stride: contextLength };
  }

  #count(length: number) {
    return { heads: this.#decoder.kvHeads, length };
  }

  #tensor(index: number, dimensions: readonly number[], offset: number): DeviceTensor {
    return {
      address: this.#memory.at(this.#buffers[index]!, offset),
      elementType: ElementType[this.#decoder.kvType],
      elementBytes: elementBytes(this.#decoder),
      dimensions,
      memory: this.#memory.info,
    };
  }
}
