import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import type { KvTensor } from '../decoder/kv-tensors.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import type { RunBinding } from '../ort/bound-tensors.ts';
import { elementBytes, type KvLayout, type KvStore, slotBytes } from '../runner/kv-cache.ts';
import type { GpuMemory, WebGpuSession } from './webgpu-session.ts';

interface KvBuffers extends KvTensor {
  readonly bySlot: readonly GpuMemory[];
}

/**
 * Keys and values in memory of WebGPU, where they stay. Runs bind whole buffers there, so each slot has
 * buffers of its own, and a run has one row.
 */
export class WebGpuKvCache implements KvStore {
  readonly #session: WebGpuSession;
  readonly #decoder: DecoderInterface;
  readonly #layout: KvLayout;
  readonly #tensors: readonly KvBuffers[];

  /** @param session owns the memory */
  constructor(session: WebGpuSession, decoder: DecoderInterface, layout: KvLayout) {
    this.#session = session;
    this.#decoder = decoder;
    this.#layout = layout;
    this.#tensors = decoder.kv.map((tensor) => {
      const bytes = slotBytes(layout, tensor, decoder);
      const bySlot = Array.from({ length: layout.slots }, () => session.allocate(bytes));
      return { ...tensor, bySlot };
    });
  }

  get positionBytes(): number {
    return this.#layout.positionBytes;
  }

  bind(binding: RunBinding, firstSlot: number, rows: number): void {
    if (rows !== 1) throw new RangeError(`a run of ${rows} rows, but WebGPU binds one slot`);
    const { kvType } = this.#decoder;
    for (const { past, present, shared, heads, headSize, bySlot } of this.#tensors) {
      const { address, memory } = bySlot[firstSlot]!;
      binding.inPlace(past, [present, ...shared], {
        address,
        memory,
        elementType: ElementType[kvType],
        elementBytes: elementBytes(this.#decoder),
        dimensions: [rows, heads, this.#layout.contextLength, headSize],
      });
    }
  }

  copy(from: number, to: number, end: number, start = 0): void {
    if (start === end) return;
    this.#session.submit((encoder) => {
      for (const { heads, headSize, bySlot } of this.#tensors) {
        const each = headSize * elementBytes(this.#decoder);
        const [source, target] = [bySlot[from]!.buffer, bySlot[to]!.buffer];
        for (let head = 0; head < heads; head++) {
          const at = (head * this.#layout.contextLength + start) * each;
          encoder.copyBufferToBuffer(source, at, target, at, (end - start) * each);
        }
      }
    });
  }

  read(): never {
    throw new Error('the KV of WebGPU is not read back');
  }

  write(): never {
    throw new Error('the KV of WebGPU is not written');
  }

  /** Does nothing: a slot has all its memory from the start. */
  discard(): void {}
}
