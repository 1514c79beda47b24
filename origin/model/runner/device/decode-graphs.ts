import { LruMap } from '@continuo/shared/lru-map.ts';
import { TOTAL_LENGTH } from '../../config/decoder-names.ts';
import type { DecoderInterface } from '../../decoder/decoder-interface.ts';
import type { DecodeBatch, SlotToken, SparseRows } from '../../model-runner.ts';
import { ElementType } from '../../onnx/onnx-graph.ts';
import { arrayTensor, type Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies } from '../../ort/cuda-copies.ts';
import type { OrtBinding } from '../../ort/ort-binding.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { OrtSession } from '../../ort/ort-session.ts';
import type { SparseLogits } from '../../sparse-logits.ts';
import { totalLengthOf } from '../batch-inputs.ts';
import type { KvLayout } from '../kv-cache.ts';
import { type AskedRows, BroughtRows } from './brought-rows.ts';
import { aheadFault } from './check-ahead.ts';
import { drawFault } from './check-draws.ts';
import { sparseFault } from './check-sparse.ts';
import { DeviceDecodeInputs } from './decode-inputs.ts';
import type { DeviceKvCache } from './device-kv-cache.ts';
import type { DeviceLogits, DeviceLogitsOptions } from './device-logits.ts';
import { RunsAhead } from './runs-ahead.ts';

/** Rows of the graphs. */
const ROWS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/** ONNX Runtime runs twice before it captures. */
const RUNS_TO_CAPTURE = 3;
/** Bindings of ordinary runs that are kept; each costs a few kilobytes of main memory. */
const MAX_RANGES = 64;

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
  /** Whether the session runs on the stream of `copies`, so that draws need not wait for a run. */
  readonly sharesStream: boolean;
}

/**
 * Decode runs whose inputs and logits stay where they are on the device: a step begins and ends with one
 * copy. Batches of the slots 0 … rows − 1 run as CUDA graphs, one for each of a few numbers of rows. A graph
 * starts the kernels of a step with one call, and keeps the addresses of its capture. Other batches run
 * without a graph.
 *
 * If the card draws the tokens of all rows, it gets the next run before the host reads them (RunsAhead).
 *
 * A graph writes to memory that is free between runs. So after a capture nothing may be allocated on the
 * device that outlives a run: what a binding copies there would be overwritten.
 */
export class DecodeGraphs {
  readonly #options: DecodeGraphsOptions;
  readonly #inputs: DeviceDecodeInputs;
  readonly #logits: Pointer;
  readonly #rows: BroughtRows;
  readonly #ahead: RunsAhead;
  #aheadFault: string | null;
  /** Graphs by number of rows, ascending. */
  readonly #bindings = new Map<number, OrtBinding>();
  /** Ordinary runs by slots. */
  readonly #ranges = new LruMap<number, OrtBinding>();

  constructor(options: DecodeGraphsOptions) {
    const { decoder, layout, memory, copies } = options;
    const { slots } = layout;
    this.#options = options;
    this.#inputs = new DeviceDecodeInputs(memory, copies, slots, layout.contextLength);
    this.#logits = memory.allocate(4 * slots * decoder.vocabularySize);
    const bringBack = () => this.#ahead.repeatLast();
    const inputs = this.#inputs;
    this.#rows = new BroughtRows({ ...options, inputs, device: this.#logits, bringBack });
    const run = (rows: number, waits: boolean) => this.#runGraph(rows, waits);
    this.#ahead = new RunsAhead({ copies, inputs, layout, run });
    this.#aheadFault = options.sharesStream ? null : 'runs have a stream of their own';
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
    return this.#rows.sparse;
  }

  /** Why runs bring whole rows only; null if that is not so. */
  get sparseFault(): string | null {
    return this.#rows.sparseFault;
  }

  /** Why runs draw no tokens; null if they do. */
  get drawFault(): string | null {
    return this.#rows.sparse?.drawFault ?? null;
  }

  /** Why no run begins before the tokens of the last one are read; null if it does. */
  get aheadFault(): string | null {
    return this.sparse?.draws ? this.#aheadFault : 'the host draws';
  }

  /** Whether the card computes a row in the run after the last one. */
  hasBegun(row: SlotToken): boolean {
    return this.#ahead.has(row);
  }

  /** Notes that work follows which changes the KV of these slots, and is not waited for. */
  addWork(slots: readonly number[]): void {
    this.#ahead.addWork(slots);
  }

  /** Waits for what the card computes. */
  settle(): void {
    this.#ahead.settle();
  }

  /** Waits for what the card computes, before the KV of a slot changes. */
  release(slot: number): void {
    this.#ahead.release(slot);
  }

  /** Returns the rows of the smallest graph of at least `rows` rows. */
  rowsFor(rows: number): number {
    for (const bound of this.#bindings.keys()) if (bound >= rows) return bound;
    throw new RangeError(`there is no graph of ${rows} rows`);
  }

  /**
   * Captures all graphs. Overwrites the first positions and the last one of every slot.
   * @throws Error if a replay has not the bits of an ordinary run, or ONNX Runtime cannot capture
   */
  capture(): void {
    const { session, decoder, layout } = this.#options;
    const positions = [0, layout.contextLength - 1];
    for (const [rows, binding] of this.#bindings) {
      const batches = positions.map((position) => probeBatch(rows, position, decoder.vocabularySize));
      const expected = batches.map((batch) => {
        this.#begin(batch, () => session.run(binding));
        return this.#rows.finish(rows, { firstRow: 0, rows }, 'whole').slice();
      });
      for (let run = 0; run < RUNS_TO_CAPTURE; run++) this.decode(batches[0]!);
      for (const [at, batch] of [...batches.entries(), [0, batches[0]!] as const]) {
        if (equal(this.decode(batch), expected[at]!)) continue;
        throw new Error(`a CUDA graph of ${rows} rows gives other bits than an ordinary run`);
      }
    }
    this.#checkSparse();
  }

  /**
   * Runs a batch whose number of rows has a graph, from slot 0 on, or takes the run that has begun.
   * @param asked the rows of which the logits are returned; absent = all
   */
  decode(batch: DecodeBatch, asked: AskedRows = { firstRow: 0, rows: batch.rows }): Float32Array {
    const taken = this.#ahead.take(batch, asked);
    const transfer = this.#rows.begin(asked);
    if (transfer === 'none' && asked.continues && this.aheadFault === null) {
      const sparse = this.#rows.sparse!;
      this.#ahead.begin(sparse, batch, asked, taken);
      sparse.bringUndrawn();
      return this.#rows.of(asked);
    }
    if (taken === 0) this.#begin(batch, () => this.#runGraph(batch.rows));
    else if (transfer === 'sparse') this.#inputs.copy();
    return this.#rows.finish(batch.rows, asked, transfer);
  }

  #runGraph(rows: number, waits = true): void {
    this.#options.session.runGraph(this.#bindings.get(rows)!, rows, waits);
  }

  /** Runs any batch without a graph. */
  decodeOrdinary(batch: DecodeBatch): Float32Array {
    const { session, layout } = this.#options;
    const { firstSlot, rows, positions } = batch;
    this.#ahead.forget();
    this.settle();
    const key = firstSlot * (layout.slots + 1) + rows;
    const binding = this.#ranges.get(key) ?? this.#bind(firstSlot, rows);
    this.#ranges.set(key, binding);
    this.#bindTotalLength(binding, totalLengthOf(positions.subarray(0, rows), layout.contextLength));
    this.#ranges.trim(
      () => this.#ranges.size > MAX_RANGES,
      (unused) => unused.dispose(),
    );
    const asked = { ...batch, firstRow: 0 };
    const transfer = this.#rows.begin(asked);
    this.#begin(batch, () => session.run(binding));
    return this.#rows.finish(rows, asked, transfer);
  }

  dispose(): void {
    try {
      this.settle();
    } finally {
      this.#disposeBindings();
      this.#options.copies.dispose();
    }
  }

  #disposeBindings(): void {
    for (const binding of [...this.#bindings.values(), ...this.#ranges.values()]) binding.dispose();
  }

  #checkSparse(): void {
    const { sparse } = this.#rows;
    if (sparse === null) return;
    const rows = [...this.#bindings.keys()].at(-1)!;
    const batch = probeBatch(rows, 0, this.#options.decoder.vocabularySize);
    const fault = sparseFault(sparse, (coldness) => this.decode(batch, { firstRow: 0, rows, coldness }));
    if (fault === null) this.#checkDraws(sparse, batch);
    else this.#rows.refuseSparse(fault);
  }

  #checkDraws(sparse: DeviceLogits, batch: DecodeBatch): void {
    if (sparse.draws === null) return;
    const { rows } = batch;
    const fault = drawFault(sparse, (draws) => this.decode(batch, { firstRow: 0, rows, draws }));
    if (fault !== null) sparse.refuseDraws(fault);
    else if (this.#aheadFault === null) this.#aheadFault = aheadFault(sparse, this, batch);
  }

  /** Copies the inputs of a batch, and begins its run. */
  #begin(batch: DecodeBatch, run: () => void): void {
    this.#inputs.fill(batch);
    this.#inputs.copy();
    run();
  }

  /** The number stays in main memory. */
  #bindTotalLength(binding: OrtBinding, positions: number): void {
    const totalLength = new Int32Array(new ArrayBuffer(4)).fill(positions);
    binding.input(TOTAL_LENGTH, arrayTensor(this.#options.session.api, totalLength, []));
  }

  /** Binds everything but the total length. */
  #bind(firstSlot: number, rows: number): OrtBinding {
    const { session, decoder, logitsName, cache, memory } = this.#options;
    const { vocabularySize } = decoder;
    const inputs = this.#inputs;
    return session.bound((binding) => {
      inputs.block.bind(binding, decoder, inputs, { sequences: rows, length: 1, logits: rows });
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

const equal = (left: Float32Array, right: Float32Array) => bytesOf(left).equals(bytesOf(right));
