import type { ProviderChoice } from '../config/device.ts';
import { ModelError } from '../config/model-json.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { KV_BYTES, type KvTensor } from '../decoder/kv-tensors.ts';
import { bytesOfState } from '../decoder/state-tensors.ts';
import { type KvBytes, MEMORY_ADVICE } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import type { BoundTensor, HostMemory, Pointer, RunBinding } from '../ort/bound-tensors.ts';

export interface KvLayout {
  readonly slots: number;
  /** Additional slots of memory that runs write into: one if the present is a new tensor. */
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

/** What a store needs of a decoder. */
export type StoredKv = Pick<DecoderInterface, 'kv' | 'kvType'>;
/** The sizes of a store. */
export type StoreSizes = Pick<KvLayout, 'slots' | 'contextLength' | 'positionBytes'>;

/** Bytes of one position of the keys, or values, of one layer. */
const positionBytesOf = ({ heads, headSize }: KvTensor, decoder: StoredKv): number =>
  heads * headSize * elementBytes(decoder);

/** Bytes of one slot of the keys, or values, of one layer. */
export const slotBytes = ({ contextLength }: StoreSizes, tensor: KvTensor, decoder: StoredKv): number =>
  contextLength * positionBytesOf(tensor, decoder);

/** Positions [start, end) of a slot. */
export interface SlotRange {
  readonly slot: number;
  readonly start: number;
  readonly end: number;
}

/** Keys and values of every slot: [slots, heads, contextLength, headSize] per layer and kind. */
export abstract class KvStore implements KvBytes {
  protected readonly decoder: StoredKv;
  protected readonly layout: StoreSizes;

  constructor(decoder: StoredKv, layout: StoreSizes) {
    this.decoder = decoder;
    this.layout = layout;
  }

  get positionBytes(): number {
    return this.layout.positionBytes;
  }

  /** Describes rows of a tensor, without their memory. */
  protected describe({ heads, headSize }: KvTensor, rows: number) {
    const { kvType } = this.decoder;
    const dimensions = [rows, heads, this.layout.contextLength, headSize];
    return { elementType: ElementType[kvType], elementBytes: elementBytes(this.decoder), dimensions };
  }

  /** Returns slots firstSlot … firstSlot + rows − 1 of each tensor. */
  abstract tensors(firstSlot: number, rows: number): BoundTensor[];

  /** Copies to the same positions of a slot in another store of this kind, or in this one. */
  abstract copyTo(target: this, from: SlotRange, to: number): void;

  /** Fills a slot with zeros. */
  abstract clear(slot: number): void;

  abstract read(slot: number, start: number, end: number, bytes: Uint8Array): void;

  abstract write(slot: number, start: number, parts: readonly Uint8Array[]): void;

  abstract discard(slot: number, start: number): void;

  /** Binds slots firstSlot … firstSlot + rows − 1 as the past and present of a run. */
  bind(binding: RunBinding, firstSlot: number, rows: number): void {
    const tensors = this.tensors(firstSlot, rows);
    for (const [index, { past, present, shared }] of this.decoder.kv.entries())
      binding.inPlace(past, [present, ...shared], tensors[index]!);
  }

  /** Copies positions [start, end) of a slot. */
  copy(from: number, to: number, end: number, start = 0): void {
    this.copyTo(this, { slot: from, start, end }, to);
  }
}

interface KvBuffer {
  readonly tensor: KvTensor;
  readonly bytes: Uint8Array;
  readonly address: Pointer;
  /** Of one slot. */
  readonly slotBytes: number;
}

/**
 * Keys and values of every slot in CPU memory. GroupQueryAttention reads it as past and extends it in place
 * as present.
 */
export class KvCache extends KvStore {
  readonly #api: HostMemory;
  readonly #buffers: readonly KvBuffer[];

  constructor(api: HostMemory, decoder: StoredKv, layout: StoreSizes) {
    super(decoder, layout);
    this.#api = api;
    this.#buffers = decoder.kv.map((tensor) => {
      const ofSlot = slotBytes(layout, tensor, decoder);
      const bytes = api.allocate(layout.slots * ofSlot);
      return { tensor, bytes, address: api.addressOf(bytes), slotBytes: ofSlot };
    });
  }

  tensors(firstSlot: number, rows: number): BoundTensor[] {
    return this.#buffers.map(({ tensor, bytes, address, slotBytes: ofSlot }) => ({
      ...this.describe(tensor, rows),
      owner: bytes,
      address: address + BigInt(firstSlot * ofSlot),
    }));
  }

  copyTo(target: KvCache, { slot, start, end }: SlotRange, to: number): void {
    this.#eachRun(slot, start, end, (run, _, index) => {
      const { bytes, slotBytes: ofSlot } = this.#buffers[index]!;
      const place = run.byteOffset - bytes.byteOffset + (to - slot) * ofSlot;
      target.#buffers[index]!.bytes.set(run, place);
    });
  }

  clear(slot: number): void {
    this.#eachRun(slot, 0, this.layout.contextLength, (run) => run.fill(0));
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
    this.#eachRun(slot, start, this.layout.contextLength, (run) => this.#api.releasePages(run));
  }

  /** Visits positions [start, end) of a slot, one contiguous run per tensor and head, with its place. */
  #eachRun(
    slot: number,
    start: number,
    end: number,
    visit: (run: Uint8Array, at: number, index: number) => void,
  ): void {
    let at = 0;
    for (const [index, { tensor, bytes, slotBytes: ofSlot }] of this.#buffers.entries()) {
      const headBytes = ofSlot / tensor.heads;
      const each = headBytes / this.layout.contextLength;
      for (let head = 0; head < tensor.heads; head++) {
        const first = slot * ofSlot + head * headBytes;
        const run = bytes.subarray(first + start * each, first + end * each);
        visit(run, at, index);
        at += run.length;
      }
    }
  }
}

/** Returns the bytes of one element of a KV tensor. */
export const elementBytes = ({ kvType }: Pick<DecoderInterface, 'kvType'>): number => KV_BYTES[kvType];
