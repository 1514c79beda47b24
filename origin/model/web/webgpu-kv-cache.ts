import type { KvTensor } from '../decoder/kv-tensors.ts';
import type { DeviceTensor } from '../ort/bound-tensors.ts';
import {
  elementBytes,
  KvStore,
  type SlotRange,
  type StoredKv,
  type StoreSizes,
  slotBytes,
} from '../runner/kv-cache.ts';
import type { GpuMemory, WebGpuSession } from './webgpu-session.ts';

interface KvBuffers {
  readonly tensor: KvTensor;
  readonly bySlot: readonly GpuMemory[];
}

/**
 * Keys and values in memory of WebGPU, where they stay. Runs bind whole buffers there, so each slot has
 * buffers of its own, and a run has one row. The device copies before it computes the next run.
 */
export class WebGpuKvCache extends KvStore {
  readonly #session: WebGpuSession;
  readonly #buffers: readonly KvBuffers[];

  /** @param session owns the memory */
  constructor(session: WebGpuSession, decoder: StoredKv, layout: StoreSizes) {
    super(decoder, layout);
    this.#session = session;
    this.#buffers = decoder.kv.map((tensor) => {
      const bytes = slotBytes(layout, tensor, decoder);
      return { tensor, bySlot: Array.from({ length: layout.slots }, () => session.allocate(bytes)) };
    });
  }

  tensors(firstSlot: number, rows: number): DeviceTensor[] {
    if (rows !== 1) throw new RangeError(`a run of ${rows} rows, but WebGPU binds one slot`);
    return this.#buffers.map(({ tensor, bySlot }) => {
      const { address, memory } = bySlot[firstSlot]!;
      return { ...this.describe(tensor, rows), address, memory };
    });
  }

  copyTo(target: WebGpuKvCache, { slot, start, end }: SlotRange, to: number): void {
    if (start === end) return;
    this.#session.submit((encoder) => {
      for (const [index, { tensor, bySlot }] of this.#buffers.entries()) {
        const each = tensor.headSize * elementBytes(this.decoder);
        const [source, place] = [bySlot[slot]!.buffer, target.#buffers[index]!.bySlot[to]!.buffer];
        for (let head = 0; head < tensor.heads; head++) {
          const at = (head * this.layout.contextLength + start) * each;
          encoder.copyBufferToBuffer(source, at, place, at, (end - start) * each);
        }
      }
    });
  }

  clear(slot: number): void {
    this.#session.submit((encoder) => {
      for (const { bySlot } of this.#buffers) encoder.clearBuffer(bySlot[slot]!.buffer);
    });
  }

  read(): never {
    throw new Error('the memory of WebGPU is not read back');
  }

  write(): never {
    throw new Error('the memory of WebGPU is not written');
  }

  /** Does nothing: a slot has all its memory from the start. */
  discard(): void {}
}
