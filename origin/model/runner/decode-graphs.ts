import { LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH } from '../config/decoder-names.ts';
import type { DecodeBatch, SparseRows } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import { arrayTensor, type Pointer } from '../ort/bound-tensors.ts';
import type { CudaCopies } from '../ort/cuda-copies.ts';
import type { OrtBinding } from '../ort/ort-binding.ts';
import type { OrtDeviceMemory } from '../ort/ort-device.ts';
import type { OrtSession } from '../ort/ort-session.ts';
import type { SparseLogits } from '../sparse-logits.ts';
import { totalLengthOf } from './batch-inputs.ts';
import { drawFault } from './check-draws.ts';
import { sparseFault } from './check-sparse.ts';
import type { DecoderInterface } from './decoder-interface.ts';
import type { DeviceKvCache } from './device-kv-cache.ts';
import { DeviceLogits, type DeviceLogitsOptions } from './device-logits.ts';
import type { KvLayout } from './kv-cache.ts';

/** Rows of the graphs. */
const ROWS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/** ONNX Runtime runs twice before it captures. */
const RUNS_TO_CAPTURE = 3;
/** Bindings of ordinary runs that are kept; each costs a few kilobytes of main memory. */
const MAX_RANGES = 64;

/**
 * Bytes of a row's inputs: token, position and index as int64, then last position, coldness and `whole` in 4
 * bytes each.
 */
const INPUT_BYTES = 3 * 8 + 3 * 4;

interface DecodeGraphsOptions {
  readonly session: OrtSession;
  readonly decoder: DecoderInterface;
  /** Name of the float32 output. */
  readonly logitsName: string;
  readonly layout: KvLayout;
  readonly cache: DeviceKvCache;
  readonly memory: OrtDeviceMemory;
  /** Owned, and disposed with the graphs. */
  readonly copies: CudaCopies;
  /** Page-locked memory of at least all slots' logits. */
  readonly logits: SparseLogits;
  /** The addresses of that memory. */
  readonly host: DeviceLogitsOptions['host'];
}

/**
 * Decode runs whose inputs and logits stay where they are on the device: a step begins and ends with one
 * copy. Batches of the slots 0 … rows − 1 run as CUDA graphs, one for each of a few numbers of rows. A graph
 * starts the kernels of a step with one call, and keeps the addresses of its capture. Other batches run
 * without a graph.
 *
 * A graph writes to memory that is free between runs. So after a capture nothing may be allocated on the
 * device that outlives a run: what a binding copies there would be overwritten.
 */
export class DecodeGraphs {
  readonly #options: DecodeGraphsOptions;
  readonly #inputs: { readonly host: bigint; readonly device: Pointer; readonly bytes: number };
  readonly #tokens: BigInt64Array;
  readonly #positions: BigInt64Array;
  readonly #lastPositions: Int32Array;
  readonly #coldness: Float32Array;
  readonly #whole: Int32Array;
  readonly #logits: Pointer;
  #sparse: DeviceLogits | null = null;
  #sparseFault: string | null = null;
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
    this.#openSparse();
    const { buffer, byteOffset } = staging;
    const int64s = (part: number) => new BigInt64Array(buffer, byteOffset + 8 * slots * part, slots);
    [this.#tokens, this.#positions] = [int64s(0), int64s(1)];
    int64s(2).set(BigInt64Array.from({ length: slots }, (_, row) => BigInt(row)));
    const last = byteOffset + 8 * slots * 3;
    this.#lastPositions = new Int32Array(buffer, last, slots);
    this.#coldness = new Float32Array(buffer, last + 4 * slots, slots);
    this.#whole = new Int32Array(buffer, last + 8 * slots, slots);
    try {
      for (const rows of new Set([...ROWS.filter((rows) => rows < slots), slots])) {
        const binding = this.#bind(0, rows);
        this.#bindings.set(rows, binding);
        // A constant of the graph, so it must suit every step.
        this.#bindTotalLength(binding, layout.contextLength);
      }
    } catch (error) {
      this.#disposeBindings();
      throw error;
    }
  }

  /** Null if runs bring whole rows only. */
  get sparse(): SparseRows | null {
    return this.#sparse;
  }

  /** Why runs bring whole rows only; null if that is not so. */
  get sparseFault(): string | null {
    return this.#sparseFault;
  }

  /** Why runs draw no tokens; null if they do. */
  get drawFault(): string | null {
    return this.#sparse?.drawFault ?? null;
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
    this.#checkSparse();
  }

  /**
   * Runs a batch whose number of rows has a graph, from slot 0 on.
   * @param asked the rows of which the logits are returned; absent = all
   */
  decode(batch: DecodeBatch, asked?: AskedRows): Float32Array {
    const graph = batch.rows;
    const { session } = this.#options;
    return this.#run(batch, () => session.runGraph(this.#bindings.get(graph)!, graph), asked);
  }

  /** Runs any batch without a graph. */
  decodeOrdinary(batch: DecodeBatch): Float32Array {
    const { session, layout } = this.#options;
    const { firstSlot, rows, positions } = batch;
    const key = firstSlot * (layout.slots + 1) + rows;
    const binding = this.#ranges.get(key) ?? this.#bind(firstSlot, rows);
    this.#ranges.delete(key);
    this.#ranges.set(key, binding);
    this.#bindTotalLength(binding, totalLengthOf(positions.subarray(0, rows), layout.contextLength));
    const [oldest, unused] = this.#ranges.entries().next().value!;
    if (this.#ranges.size > MAX_RANGES) {
      unused.dispose();
      this.#ranges.delete(oldest);
    }
    const { coldness, draws } = batch;
    return this.#run(batch, () => session.run(binding), { firstRow: 0, rows, coldness, draws });
  }

  dispose(): void {
    this.#disposeBindings();
    this.#options.copies.dispose();
  }

  #disposeBindings(): void {
    for (const binding of [...this.#bindings.values(), ...this.#ranges.values()]) binding.dispose();
  }

  #openSparse(): void {
    const { logits, host, memory, copies } = this.#options;
    try {
      this.#sparse = new DeviceLogits({ logits, host, memory, copies, device: this.#logits });
    } catch (error) {
      this.#sparseFault = (error as Error).message;
    }
  }

  #checkSparse(): void {
    if (this.#sparse === null) return;
    const rows = [...this.#bindings.keys()].at(-1)!;
    const batch = probeBatch(rows, 0, this.#options.decoder.vocabularySize);
    this.#sparseFault = sparseFault(this.#sparse, (coldness) =>
      this.decode(batch, { firstRow: 0, rows, coldness }),
    );
    if (this.#sparseFault === null) this.#checkDraws(this.#sparse, batch);
    else this.#sparse = null;
  }

  #checkDraws(sparse: DeviceLogits, batch: DecodeBatch): void {
    if (sparse.draws === null) return;
    const { rows } = batch;
    const fault = drawFault(sparse, (draws) => this.decode(batch, { firstRow: 0, rows, draws }));
    if (fault !== null) sparse.refuseDraws(fault);
  }

  #run(
    { rows, tokens, positions }: DecodeBatch,
    run: () => void,
    asked: AskedRows = { firstRow: 0, rows },
  ): Float32Array {
    const { copies, logits, decoder, layout, memory } = this.#options;
    for (let row = 0; row < rows; row++) {
      this.#tokens[row] = BigInt(tokens[row]!);
      this.#positions[row] = BigInt(positions[row]!);
      this.#lastPositions[row] = positions[row]!;
    }
    const how = this.#beginRows(asked);
    const { host, device, bytes } = this.#inputs;
    copies.toDevice(host, device, bytes);
    run();
    const first = asked.firstRow * decoder.vocabularySize;
    const destination = logits.memory.subarray(first, first + asked.rows * decoder.vocabularySize);
    const setting = (part: number) => memory.at(device, (8 * 3 + 4 * part) * layout.slots);
    if (how === 'whole') copies.toHost(this.#logits + BigInt(4 * first), destination);
    if (how === 'sparse') this.#sparse!.summarize(rows, { coldness: setting(1), whole: setting(2) });
    this.#sparse?.draw();
    return destination;
  }

  /** Writes how each row is wanted. Returns how the rows come that the device does not draw from. */
  #beginRows({ firstRow, rows, coldness, draws }: AskedRows): 'whole' | 'sparse' | 'none' {
    const { logits } = this.#options;
    const sparse = this.#sparse;
    logits.clear();
    sparse?.beginRequests();
    if (sparse === null || (coldness === undefined && draws === undefined)) return 'whole';
    this.#whole.fill(0);
    this.#coldness.fill(1);
    let drawn = 0;
    for (let index = 0; index < rows; index++) {
      const row = firstRow + index;
      const request = draws?.[index] ?? null;
      const ofRow = coldness?.[index] ?? null;
      if (request !== null && sparse.request(row, request)) {
        logits.beginAbsent(row);
        drawn++;
      } else if (ofRow === null) this.#whole[row] = 1;
      else {
        this.#coldness[row] = ofRow;
        logits.begin(row, ofRow);
      }
    }
    return drawn === rows ? 'none' : 'sparse';
  }

  /** The number stays in main memory. */
  #bindTotalLength(binding: OrtBinding, positions: number): void {
    const totalLength = new Int32Array(new ArrayBuffer(4)).fill(positions);
    binding.input(TOTAL_LENGTH, arrayTensor(this.#options.session.api, totalLength, []));
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

/** The rows whose logits are wanted, and which of them may be sparse. */
interface AskedRows extends Pick<DecodeBatch, 'rows' | 'coldness' | 'draws'> {
  readonly firstRow: number;
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

const equal = (left: Float32Array, right: Float32Array) => bytesOf(left).equals(bytesOf(right));
