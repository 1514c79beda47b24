import { ElementType } from '../onnx/onnx-graph.ts';
import type { BoundTensor, OrtBinding } from '../ort/ort-binding.ts';
import type { Pointer } from '../ort/ort-capi.ts';
import type { OrtDeviceMemory } from '../ort/ort-device.ts';
import type { DecoderInterface } from './decoder-interface.ts';
import { elementBytes, type KvLayout, type KvStore } from './kv-cache.ts';
import type { OrtRowCopier, RowMoves } from './ort-row-copier.ts';

/** Positions [start, end) of a slot. */
export interface SlotRange {
  readonly slot: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Keys and values of every slot in device memory: one buffer [slots, kvHeads, contextLength, headSize] per layer and kind. It
 * starts as zeros, because attention multiplies positions after a row's length by zero and must not read NaN there.
 */
export class DeviceKvCache implements KvStore {
  readonly kvBytes = null;
  readonly #memory: OrtDeviceMemory;
  readonly #copier: OrtRowCopier;
  readonly #decoder: DecoderInterface;
  readonly #layout: KvLayout;
  readonly #buffers: readonly Pointer[];

  constructor(memory: OrtDeviceMemory, copier: OrtRowCopier, decoder: DecoderInterface, layout: KvLayout) {
    this.#memory = memory;
    this.#copier = copier;
    this.#decoder = decoder;
    this.#layout = layout;
    this.#buffers = decoder.kv.map(() => memory.allocate(layout.totalBytes / decoder.kv.length));
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

  copy(from: number, to: number, length: number): void {
    this.copyTo(this, { slot: from, start: 0, end: length }, to);
  }

  /** Copies to the same positions of a slot in another cache or this one. */
  copyTo(other: DeviceKvCache, from: SlotRange, to: number): void {
    if (from.start === from.end) return;
    const moves = { from: this.#rows(from), to: other.#rows({ ...from, slot: to }) };
    this.#copier.copy(this.#matrices(), other.#matrices(), moves);
  }

  /** @param zeros one position of one head in CPU memory */
  clear(zeros: BoundTensor): void {
    const sources = this.#buffers.map(() => zeros);
    for (let slot = 0; slot < this.#layout.slots; slot++) {
      const to = this.#rows({ slot, start: 0, end: this.#layout.contextLength });
      this.#copier.copy(sources, this.#matrices(), {
        from: new BigInt64Array(new ArrayBuffer(8 * to.length)),
        to,
      });
    }
  }

  /** Views the buffers as matrices with one row per position and head. */
  #matrices(): BoundTensor[] {
    const { kvHeads, headSize } = this.#decoder;
    const { slots, contextLength } = this.#layout;
    const dimensions = [slots * kvHeads * contextLength, headSize];
    return this.#buffers.map((_, index) => this.#tensor(index, dimensions, 0));
  }

  #rows({ slot, start, end }: SlotRange): RowMoves['from'] {
    const { kvHeads } = this.#decoder;
    const length = end - start;
    const rows = new BigInt64Array(new ArrayBuffer(8 * kvHeads * length));
    for (let head = 0; head < kvHeads; head++) {
      const first = (slot * kvHeads + head) * this.#layout.contextLength + start;
      for (let i = 0; i < length; i++) rows[head * length + i] = BigInt(first + i);
    }
    return rows;
  }

  #tensor(index: number, dimensions: readonly number[], offset: number): BoundTensor {
    return {
      address: this.#memory.at(this.#buffers[index]!, offset),
      elementType: ElementType[this.#decoder.kvType],
      elementBytes: elementBytes(this.#decoder),
      dimensions,
      memory: this.#memory.info,
    };
  }
}
