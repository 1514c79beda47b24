import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import type { KvBytes } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import type { HostMemory, Pointer, RunBinding } from '../ort/bound-tensors.ts';
import { elementBytes, type KvLayout } from '../runner/kv-cache.ts';

/** One buffer per layer and kind (key, value), each with room for [1, kvHeads, contextLength, headSize]. */
type Buffers = readonly { readonly bytes: Uint8Array; readonly address: Pointer }[];

interface Slot {
  /** Contains [1, kvHeads, length, headSize] without gaps. */
  buffers: Buffers;
  length: number;
}

/**
 * Keys and values of every slot for graphs whose present is a new tensor. A run reads the slot's buffers and
 * writes the spare ones; after success the two are swapped. Nothing is copied, and a failed run changes
 * nothing.
 */
export class ConcatenatedCache implements KvBytes {
  readonly positionBytes: number;
  readonly #api: HostMemory;
  readonly #decoder: DecoderInterface;
  readonly #slots: readonly Slot[];
  #spare: Buffers;

  constructor(api: HostMemory, decoder: DecoderInterface, { slots, contextLength, positionBytes }: KvLayout) {
    this.positionBytes = positionBytes;
    this.#api = api;
    this.#decoder = decoder;
    const size = contextLength * decoder.kvHeads * decoder.headSize * elementBytes(decoder);
    const allocate = () =>
      decoder.kv.map(() => {
        const bytes = new Uint8Array(new ArrayBuffer(size));
        return { bytes, address: api.addressOf(bytes) };
      });
    this.#slots = Array.from({ length: slots }, () => ({ buffers: allocate(), length: 0 }));
    this.#spare = allocate();
  }

  /** Binds a run of `tokens` positions after the slot's first `start`; later positions are dropped. */
  bind(binding: RunBinding, slot: number, start: number, tokens: number): void {
    const { kv, kvHeads, headSize, kvType } = this.#decoder;
    const { buffers } = this.#keepFirst(slot, start);
    const tensor = { elementType: ElementType[kvType], elementBytes: elementBytes(this.#decoder) };
    for (const [index, { past, present }] of kv.entries()) {
      const dimensions = (length: number) => [1, kvHeads, length, headSize];
      const [read, written] = [buffers[index]!, this.#spare[index]!];
      const memory = ({ bytes, address }: Buffers[number]) => ({ ...tensor, owner: bytes, address });
      binding.input(past, { ...memory(read), dimensions: dimensions(start) });
      binding.output(present, { ...memory(written), dimensions: dimensions(start + tokens) });
    }
  }

  /** Commits the run that was bound last. */
  commit(slot: number, tokens: number): void {
    const held = this.#slots[slot]!;
    [held.buffers, this.#spare] = [this.#spare, held.buffers];
    held.length += tokens;
  }

  /**
   * Copies positions [0, length) of a slot, also if some are there already: the length of a cache is part of
   * its layout.
   */
  copy(from: number, to: number, length: number): void {
    const source = this.#require(from, length);
    const target = this.#slots[to]!;
    const bytes = this.#headBytes;
    for (const [index, buffer] of source.buffers.entries()) {
      for (let head = 0; head < this.#decoder.kvHeads; head++) {
        const start = head * source.length * bytes;
        const positions = buffer.bytes.subarray(start, start + length * bytes);
        target.buffers[index]!.bytes.set(positions, head * length * bytes);
      }
    }
    target.length = length;
  }

  read(slot: number, start: number, end: number, bytes: Uint8Array): void {
    const { buffers, length } = this.#require(slot, end);
    const each = this.#headBytes;
    let at = 0;
    for (const buffer of buffers) {
      for (let head = 0; head < this.#decoder.kvHeads; head++) {
        const first = head * length;
        bytes.set(buffer.bytes.subarray((first + start) * each, (first + end) * each), at);
        at += (end - start) * each;
      }
    }
  }

  write(slot: number, start: number, parts: readonly Uint8Array[]): void {
    const held = this.#keepFirst(slot, start);
    const each = this.#headBytes;
    const { kvHeads } = this.#decoder;
    const end = start + parts.reduce((sum, { length }) => sum + length / this.positionBytes, 0);
    for (const [index, { bytes }] of held.buffers.entries()) {
      // From the last head on, because heads move to higher positions.
      for (let head = kvHeads - 1; head >= 0; head--) {
        bytes.copyWithin(head * end * each, head * start * each, (head + 1) * start * each);
        let at = (head * end + start) * each;
        for (const part of parts) {
          const size = part.length / (held.buffers.length * kvHeads);
          const first = (index * kvHeads + head) * size;
          bytes.set(part.subarray(first, first + size), at);
          at += size;
        }
      }
    }
    held.length = end;
  }

  discard(slot: number, start: number): void {
    const used = this.#decoder.kvHeads * start * this.#headBytes;
    for (const { bytes } of this.#keepFirst(slot, start).buffers)
      this.#api.releasePages(bytes.subarray(used));
  }

  #keepFirst(slot: number, length: number): Slot {
    const held = this.#require(slot, length);
    if (length === held.length) return held;
    const bytes = this.#headBytes;
    for (const buffer of held.buffers) {
      for (let head = 1; head < this.#decoder.kvHeads; head++) {
        const start = head * held.length * bytes;
        buffer.bytes.copyWithin(head * length * bytes, start, start + length * bytes);
      }
    }
    held.length = length;
    return held;
  }

  #require(slot: number, length: number): Slot {
    const held = this.#slots[slot]!;
    if (length > held.length)
      throw new RangeError(`slot ${slot} has ${held.length} positions, expected at least ${length}`);
    return held;
  }

  /** Bytes of one position of one head. */
  get #headBytes(): number {
    return this.#decoder.headSize * elementBytes(this.#decoder);
  }
}
