import type { DecodeBatch } from '../model-runner.ts';
import { LAST_POSITIONS, TOTAL_LENGTH } from '../onnx/attention-lengths.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import { LOGITS_INDEX } from '../onnx/onnx-patch.ts';
import type { CudaCopies } from '../ort/cuda-copies.ts';
import { arrayTensor, type OrtBinding } from '../ort/ort-binding.ts';
import type { Pointer } from '../ort/ort-capi.ts';
import type { OrtDeviceMemory } from '../ort/ort-device.ts';
import type { OrtSession } from '../ort/ort-session.ts';
import { totalLengthOf } from './batch-inputs.ts';
import type { DecoderInterface } from './decoder-interface.ts';
import type { DeviceKvCache } from './device-kv-cache.ts';
import type { KvLayout } from './kv-cache.ts';

/** Rows of the graphs. */
const ROWS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/** ONNX Runtime runs twice before it captures. */
const RUNS_TO_CAPTURE = 3;
/** Bindings of ordinary runs that are kept; each costs a few kilobytes of main memory. */
const MAX_RANGES = 64;

/** Bytes of a row's inputs: token, position and index as int64, the last position as int32. */
const INPUT_BYTES = 3 * 8 + 4;

export interface DecodeGraphsOptions {
  readonly session: OrtSession;
  readonly decoder: DecoderInterface;
  /** Name of the float32 output. */
  readonly logitsName: string;
  readonly layout: KvLayout;
  readonly cache: DeviceKvCache;
  readonly memory: OrtDeviceMemory;
  /** Owned, and disposed with the graphs. */
  readonly copies: CudaCopies;
  /** Page-locked memory of all rows' logits: [slots, vocabulary]. */
  readonly logits: Float32Array<ArrayBuffer>;
}

/**
 * Decode runs whose inputs and logits stay where they are on the device: a step begins and ends with one copy. Batches of the
 * slots 0 … rows − 1 run as CUDA graphs, one for each of a few numbers of rows. A graph starts the kernels of a step with one
 * call, and keeps the addresses of its capture. Other batches run without a graph.
 *
 * A graph writes to memory that is free between runs. So after a capture nothing may be allocated on the device that outlives a
 * run: what a binding copies there would be overwritten.
 */
export class DecodeGraphs {
  readonly #options: DecodeGraphsOptions;
  readonly #inputs: { readonly host: bigint; readonly device: Pointer; readonly bytes: number };
  readonly #tokens: BigInt64Array;
  readonly #positions: BigInt64Array;
  readonly #lastPositions: Int32Array;
  readonly #logits: Pointer;
  /** Graphs by number of rows, ascending. */
  readonly #bindings = new Map<number, OrtBinding>();
  /** Ordinary runs by slots; least recently used first. */
  readonly #ranges = new Map<number, OrtBinding>();

  constructor(options: DecodeGraphsOptions) {
    const { decoder, layout, memory, copies } = options;
    const { slots } = layout;
    this.#options = options;
    const bytes = INPUT_BYTES * slots;
    const { address: host, bytes: staging } = copies.hostMemory(bytes);
    this.#inputs = { host, device: memory.allocate(bytes), bytes };
    this.#logits = memory.allocate(4 * slots * decoder.vocabularySize);
    const { buffer, byteOffset } = staging;
    const int64s = (part: number) => new BigInt64Array(buffer, byteOffset + 8 * slots * part, slots);
    [this.#tokens, this.#positions] = [int64s(0), int64s(1)];
    int64s(2).set(BigInt64Array.from({ length: slots }, (_, row) => BigInt(row)));
    this.#lastPositions = new Int32Array(buffer, byteOffset + 8 * slots * 3, slots);
    for (const rows of new Set([...ROWS.filter((rows) => rows < slots), slots])) {
      const binding = this.#bind(0, rows);
      // A constant of the graph, so it must suit every step.
      const totalLength = new Int32Array(new ArrayBuffer(4)).fill(layout.contextLength);
      binding.input(TOTAL_LENGTH, arrayTensor(options.session.api, totalLength, []));
      this.#bindings.set(rows, binding);
    }
  }

  /** Returns the rows of the smallest graph of at least `rows` rows. */
  rowsFor(rows: number): number {
    for (const bound of this.#bindings.keys()) if (bound >= rows) return bound;
    throw new RangeError(`there is no graph of ${rows} rows`);
  }

  /**
   * Captures all graphs. Overwrites a position at the start and the end of every slot.
   * @throws Error if a replay has not the bits of an ordinary run, or ONNX Runtime cannot capture
   */
  capture(): void {
    const { session, decoder, layout } = this.#options;
    const positions = [0, layout.contextLength - 1];
    for (const [rows, binding] of this.#bindings) {
      const batches = positions.map((position) => probeBatch(rows, position, decoder.vocabularySize));
      const expected = batches.map((batch) => this.#run(batch, () => session.run(binding)).slice());
      for (let run = 0; run < RUNS_TO_CAPTURE; run++) this.decode(batches[0]!);
      for (const [at, batch] of [...batches.entries(), [0, batches[0]!] as const]) {
        if (equal(this.decode(batch), expected[at]!)) continue;
        throw new Error(`a CUDA graph of ${rows} rows gives other bits than an ordinary run`);
      }
    }
  }

  /** Runs a batch whose number of rows has a graph, from slot 0 on. Returns the logits of `firstRow` and later rows. */
  decode(batch: DecodeBatch, firstRow = 0, rows = batch.rows): Float32Array {
    const graph = batch.rows;
    const { session } = this.#options;
    return this.#run(batch, () => session.runGraph(this.#bindings.get(graph)!, graph), firstRow, rows);
  }

  /** Runs any batch without a graph. */
  decodeOrdinary(batch: DecodeBatch): Float32Array {
    const { session, layout } = this.#options;
    const { firstSlot, rows, positions } = batch;
    const totalLength = new Int32Array(new ArrayBuffer(4));
    totalLength[0] = totalLengthOf(positions.subarray(0, rows), layout.contextLength);
    const key = firstSlot * (layout.slots + 1) + rows;
    const binding = this.#ranges.get(key) ?? this.#bind(firstSlot, rows);
    // Stays in main memory.
    binding.input(TOTAL_LENGTH, arrayTensor(session.api, totalLength, []));
    this.#ranges.delete(key);
    this.#ranges.set(key, binding);
    const [oldest, unused] = this.#ranges.entries().next().value!;
    if (this.#ranges.size > MAX_RANGES) {
      unused.dispose();
      this.#ranges.delete(oldest);
    }
    return this.#run(batch, () => session.run(binding));
  }

  dispose(): void {
    for (const binding of [...this.#bindings.values(), ...this.#ranges.values()]) binding.dispose();
    this.#options.copies.dispose();
  }

  #run({ rows, tokens, positions }: DecodeBatch, run: () => void, firstRow = 0, wanted = rows): Float32Array {
    const { copies, logits, decoder } = this.#options;
    for (let row = 0; row < rows; row++) {
      this.#tokens[row] = BigInt(tokens[row]!);
      this.#positions[row] = BigInt(positions[row]!);
      this.#lastPositions[row] = positions[row]!;
    }
    const { host, device, bytes } = this.#inputs;
    copies.toDevice(host, device, bytes);
    run();
    const rowBytes = 4 * decoder.vocabularySize;
    const found = logits.subarray(
      firstRow * decoder.vocabularySize,
      (firstRow + wanted) * decoder.vocabularySize,
    );
    copies.toHost(this.#logits + BigInt(firstRow * rowBytes), found);
    return found;
  }

  /** Binds everything but the total length. */
  #bind(firstSlot: number, rows: number): OrtBinding {
    const { session, decoder, logitsName, layout, cache, memory } = this.#options;
    const { slots } = layout;
    const { tokenInput, positionIds, vocabularySize } = decoder;
    const part = (index: number, elementType: 'int64' | 'int32', dimensions: readonly number[]) => ({
      address: memory.at(this.#inputs.device, 8 * slots * index),
      elementType: ElementType[elementType],
      elementBytes: elementType === 'int64' ? 8 : 4,
      dimensions,
      memory: memory.info,
    });
    return session.bound((binding) => {
      binding.input(tokenInput, part(0, 'int64', [rows, 1]));
      if (positionIds !== null) binding.input(positionIds, part(1, 'int64', [rows, 1]));
      binding.input(LOGITS_INDEX, part(2, 'int64', [rows]));
      binding.input(LAST_POSITIONS, part(3, 'int32', [rows]));
      const float32 = { elementType: ElementType.float32, elementBytes: 4, memory: memory.info };
      binding.output(logitsName, { ...float32, address: this.#logits, dimensions: [rows, vocabularySize] });
      cache.bind(binding, firstSlot, rows);
    });
  }
}

/** A batch with different tokens in all rows and positions. */
const probeBatch = (rows: number, position: number, vocabularySize: number): DecodeBatch => ({
  firstSlot: 0,
  rows,
  tokens: Int32Array.from({ length: rows }, (_, row) => (7 * row + position) % vocabularySize),
  positions: new Int32Array(rows).fill(position),
});

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

const equal = (one: Float32Array, other: Float32Array) => bytesOf(one).equals(bytesOf(other));
