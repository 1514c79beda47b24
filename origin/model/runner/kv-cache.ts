import type { ProviderChoice } from '../config/device.ts';
import { ModelError } from '../config/model-json.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { KV_BYTES, type KvTensor } from '../decoder/kv-tensors.ts';
import { type KvBytes, MEMORY_ADVICE } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import type { HostMemory, Pointer, RunBinding } from '../ort/bound-tensors.ts';
import { bytesOfState } from './state-cache.ts';

export interface KvLayout {
  readonly slots: number;
  /** Additional slots of memory that runs write into: one if past and present are separate tensors. */
  readonly spareSlots: number;
  readonly contextLength: number;
  /** Bytes of one position of one slot: all layers, keys and values. */
  readonly positionBytes: number;
  /** Bytes of one slot that do not depend on its length: two states, where its last run began and ended. */
  readonly stateBytes: number;
  readonly totalBytes: number;
}

const MIB = 2 ** 20;

export const inMiB = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

export function kvLayout(decoder: DecoderInterface, slots: number, contextLength: number): KvLayout {
  const positionBytes = decoder.kv.reduce((sum, tensor) => sum + positionBytesOf(tensor, decoder), 0);
  const spareSlots = decoder.cache === 'concatenated' ? 1 : 0;
  const stateBytes = 2 * bytesOfState(decoder.states);
  const totalBytes = (slots + spareSlots) * (contextLength * positionBytes + stateBytes);
  return { slots, spareSlots, contextLength, positionBytes, stateBytes, totalBytes };
}

/**
 * Most slots that are chosen automatically. Rows of one run share the time to read the weights. Graphs that
 * run row by row gain nothing from more, and each step takes longer. On an H200, 128 rows of 1.2 B give twice
 * the tokens/s of 32; 256 is the largest of its graphs.
 */
const MAX_SLOTS = { together: 64, onCuda: 256, rowByRow: 8 } as const;

export function maxAutomaticSlots(
  { cache, couplesRows }: DecoderInterface,
  provider: ProviderChoice,
): number {
  if (cache === 'concatenated' || couplesRows) return MAX_SLOTS.rowByRow;
  return provider === 'cuda' ? MAX_SLOTS.onCuda : MAX_SLOTS.together;
}

/** "32 slots × 2048 positions × 8192 bytes = 512 MiB" */
export function describeLayout(layout: KvLayout): string {
  const { slots, spareSlots, contextLength, positionBytes, stateBytes, totalBytes } = layout;
  const rows = spareSlots === 0 ? `${slots} slots` : `(${slots} slots + ${spareSlots} spare)`;
  const positions = `${contextLength} positions × ${positionBytes} bytes`;
  const slot = stateBytes === 0 ? positions : `(${positions} + ${stateBytes} bytes of state)`;
  return `${rows} × ${slot} = ${inMiB(totalBytes)}`;
}

/** The KV cache does not fit into the available memory. */
export class OutOfMemoryError extends ModelError {}

/**
 * @param weightBytes weights still to be loaded, already subtracted from the limit
 * @throws OutOfMemoryError with the sizes if the cache is larger than `limitBytes`
 */
export function requireFit(layout: KvLayout, limitBytes: number, weightBytes = 0): void {
  if (layout.totalBytes <= limitBytes) return;
  const limit = Math.max(0, Math.floor(limitBytes / MIB));
  const beside = weightBytes === 0 ? '' : ` beside ${inMiB(weightBytes)} of weights`;
  throw new OutOfMemoryError(
    `KV cache does not fit: ${describeLayout(layout)}, but ${limit} MiB are available${beside}; ${MEMORY_ADVICE}`,
  );
}

/** Bytes of one position of the keys, or values, of one layer. */
const positionBytesOf = ({ heads, headSize }: KvTensor, decoder: DecoderInterface): number =>
  heads * headSize * elementBytes(decoder);

/** Bytes of one slot of the keys, or values, of one layer. */
export const slotBytes = ({ contextLength }: KvLayout, tensor: KvTensor, decoder: DecoderInterface): number =>
  contextLength * positionBytesOf(tensor, decoder);

/** Keys and values of every slot, in any memory. */
export interface KvStore extends KvBytes {
  /** Binds slots firstSlot … firstSlot + rows − 1 as the past and present of a run. */
  bind(binding: RunBinding, firstSlot: number, rows: number): void;
  /** Copies positions [start, end) of a slot. */
  copy(from: number, to: number, end: number, start?: number): void;
}

interface KvBuffer extends KvTensor {
  readonly bytes: Uint8Array;
  readonly address: Pointer;
  /** Of one slot. */
  readonly slotBytes: number;
}

/**
 * Keys and values of every slot in CPU memory: one buffer [slots, heads, contextLength, headSize] per layer
 * and kind. GroupQueryAttention reads it as past and extends it in place as present.
 */
export class KvCache implements KvStore {
  readonly #decoder: DecoderInterface;
  readonly #layout: KvLayout;
  readonly #api: HostMemory;
  readonly #buffers: readonly KvBuffer[];

  constructor(api: HostMemory, decoder: DecoderInterface, layout: KvLayout) {
    this.#decoder = decoder;
    this.#layout = layout;
    this.#api = api;
    this.#buffers = decoder.kv.map((tensor) => {
      const ofSlot = slotBytes(layout, tensor, decoder);
      const bytes = api.allocate((layout.slots + layout.spareSlots) * ofSlot);
      return { ...tensor, bytes, address: api.addressOf(bytes), slotBytes: ofSlot };
    });
  }

  bind(binding: RunBinding, firstSlot: number, rows: number): void {
    for (const { past, present, shared, heads, headSize, bytes, address, slotBytes: ofSlot } of this
      .#buffers) {
      binding.inPlace(past, [present, ...shared], {
        elementType: ElementType[this.#decoder.kvType],
        elementBytes: elementBytes(this.#decoder),
        dimensions: [rows, heads, this.#layout.contextLength, headSize],
        owner: bytes,
        address: address + BigInt(firstSlot * ofSlot),
      });
    }
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#eachRun(from, start, end, (run, _, { slotBytes: ofSlot }) => {
      const place = run.byteOffset + (to - from) * ofSlot;
      new Uint8Array(run.buffer, place, run.length).set(run);
    });
  }

  get positionBytes(): number {
    return this.#layout.positionBytes;
  }

  read(slot: number, start: number, end: number, bytes: Uint8Array): void {
    this.#eachRun(slot, start, end, (run, at) => bytes.set(run, at));
  }

  write(slot: number, start: number, parts: readonly Uint8Array[]): void {
    let first = start;
    for (const bytes of parts) {
      const end = first + bytes.length / this.positionBytes;
      this.#eachRun(slot, first, end, (run, at) => run.set(bytes.subarray(at, at + run.length)));
      first = end;
    }
  }

  discard(slot: number, start: number): void {
    this.#eachRun(slot, start, this.#layout.contextLength, (run) => this.#api.releasePages(run));
  }

  /** Visits positions [start, end) of a slot, one contiguous run per buffer and head, with its place. */
  #eachRun(
    slot: number,
    start: number,
    end: number,
    visit: (run: Uint8Array, at: number, buffer: KvBuffer) => void,
  ): void {
    let at = 0;
    for (const buffer of this.#buffers) {
      const headBytes = buffer.slotBytes / buffer.heads;
      const each = headBytes / this.#layout.contextLength;
      for (let head = 0; head < buffer.heads; head++) {
        const first = slot * buffer.slotBytes + head * headBytes;
        const run = buffer.bytes.subarray(first + start * each, first + end * each);
        visit(run, at, buffer);
        at += run.length;
      }
    }
  }
}

/** Returns the bytes of one element of a KV tensor. */
export const elementBytes = ({ kvType }: DecoderInterface): number => KV_BYTES[kvType];
