import { readFileSync } from 'node:fs';
import type { DrawnToken, DrawRequest } from '../../device-draws.ts';
import type { DrawnRows, SparseRows } from '../../model-runner.ts';
import type { Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies, CudaWork } from '../../ort/cuda-copies.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import { BLOCK_SIZE, blocksOf, type SparseLogits, statisticsOf } from '../../sparse-logits.ts';
import { DeviceDraws, type RunInputs } from './device-draws.ts';

const KERNELS = new URL('./kernels/logit-blocks.ptx', import.meta.url);
/** Threads of `block_maxima` and `block_sums`; each warp of 32 takes a block of logits. */
const SUMMARY_THREADS = 256;
/** Blocks of logits that one of their thread blocks takes. */
const SUMMARY_BLOCKS = SUMMARY_THREADS / 32;
const KERNEL_THREADS = {
  block_maxima: SUMMARY_THREADS,
  block_sums: SUMMARY_THREADS,
  fetch_blocks: BLOCK_SIZE,
};

export interface DeviceLogitsOptions {
  readonly memory: OrtDeviceMemory;
  readonly copies: CudaCopies;
  /** The rows on the device. */
  readonly device: Pointer;
  /** The addresses of its memory. */
  readonly host: { readonly address: bigint; readonly forKernels: bigint };
  readonly logits: SparseLogits;
  /** Brings the rows back to the device if another run has overwritten them. */
  bringBack(): void;
}

/**
 * Where the settings of all rows lie on the device: coldness as float32, and whether the row is to be whole
 * as int32.
 */
interface RowSettings {
  readonly coldness: Pointer;
  readonly whole: Pointer;
}

/** Summarizes rows of logits on a CUDA card, and brings their blocks to main memory. */
export class DeviceLogits implements SparseRows, DrawnRows {
  readonly logits: SparseLogits;
  readonly #options: DeviceLogitsOptions;
  readonly #kernels: ReturnType<typeof loadKernels>;
  readonly #statistics: Pointer;
  /** Bytes of a row's statistics. */
  readonly #rowBytes: number;
  readonly #vocabulary: bigint;
  #draws: DeviceDraws | null;
  /** Why the device does not draw; null if it does. */
  #drawFault: string | null = null;
  /** By row: its request of the last run. */
  readonly #requests = new Map<number, number>();

  constructor(options: DeviceLogitsOptions) {
    const { memory, copies, logits } = options;
    this.#options = options;
    this.logits = logits;
    this.#rowBytes = 4 * statisticsOf(logits.vocabularySize);
    this.#statistics = memory.allocate(this.#rowBytes * logits.rows);
    this.#kernels = loadKernels(copies);
    this.#vocabulary = BigInt(logits.vocabularySize);
    const { rows, vocabularySize } = logits;
    const { device } = options;
    try {
      this.#draws = new DeviceDraws({ memory, copies, logits: device, rows, vocabularySize });
    } catch (error) {
      this.#draws = null;
      this.#drawFault = (error as Error).message;
    }
  }

  get draws(): DrawnRows | null {
    return this.#draws && this;
  }

  get drawFault(): string | null {
    return this.#drawFault;
  }

  /** Samplers draw all tokens from now on. */
  refuseDraws(fault: string): void {
    this.#draws = null;
    this.#drawFault = fault;
  }

  /** Asks for the token of a row. Returns false if a sampler must draw it. */
  request(row: number, request: DrawRequest): boolean {
    const index = this.#draws?.add(row, request) ?? -1;
    if (index < 0) return false;
    this.#requests.set(row, index);
    return true;
  }

  /** Forgets the requests of the last run. */
  beginRequests(): void {
    this.#requests.clear();
    this.#draws?.begin();
  }

  /** Draws what was asked for. Rows from which the device cannot draw come as a whole. */
  draw(): void {
    if (this.#requests.size === 0) return;
    this.#draws!.run();
    this.bringUndrawn();
  }

  /** Brings the rows from which the device could not draw. */
  bringUndrawn(): void {
    for (const [row, index] of this.#requests) {
      if (this.#draws!.id(index) < 0) this.#fetch(this.logits.listRest(row));
    }
  }

  /**
   * Begins to draw what was asked for, and to give the tokens to the next run.
   * @param bring begins to bring the inputs of the next run, with the positions of this one
   */
  beginDraws(next: RunInputs, bring: (work: CudaWork) => void): void {
    this.#options.copies.begin((work) => {
      this.#draws!.draw(work);
      bring(work);
      this.#draws!.feed(work, next);
    });
  }

  /** The ids that the device has drawn, by row; −1 if it could not. */
  *drawnIds(): Generator<readonly [row: number, id: number]> {
    for (const [row, index] of this.#requests) yield [row, this.#draws!.id(index)];
  }

  drawn(row: Float32Array): DrawnToken | null {
    const index = this.#requests.get(this.logits.rowOf(row));
    return index === undefined ? null : (this.#draws?.token(index) ?? null);
  }

  /**
   * Brings the statistics of the first `rows` rows, the blocks of their largest logits, and all of rows that
   * are to be whole.
   */
  summarize(rows: number, { coldness, whole }: RowSettings): void {
    const { copies, device, host, logits } = this.#options;
    const { block_maxima, block_sums } = this.#kernels;
    const blocks = blocksOf(logits.vocabularySize);
    const grid = [Math.ceil(blocks / SUMMARY_BLOCKS), rows] as const;
    const values = [device, this.#statistics, this.#vocabulary, BigInt(blocks)];
    const bytes = rows * this.#rowBytes;
    const address = host.address + BigInt(4 * logits.statisticsAt);
    copies.perform((work) => {
      work.launch(block_maxima, grid, values);
      work.launch(block_sums, grid, [...values, coldness, whole, host.forKernels]);
      const from = { where: 'device', address: this.#statistics, pitch: bytes } as const;
      work.copy(from, { where: 'host', address, pitch: bytes }, bytes, 1);
    });
  }

  fetchWanted(): boolean {
    const count = this.logits.listWanted();
    this.#fetch(count);
    return count > 0;
  }

  complete(row: Float32Array): void {
    const index = this.logits.indexOf(row);
    if (index >= 0) this.#fetch(this.logits.listRest(index));
  }

  #fetch(count: number): void {
    if (count === 0) return;
    this.#options.bringBack();
    const { copies, device, host, logits } = this.#options;
    const list = host.forKernels + BigInt(logits.list.byteOffset - logits.memory.byteOffset);
    const values = [device, host.forKernels, list, this.#vocabulary];
    copies.perform((work) => work.launch(this.#kernels.fetch_blocks, [count, 1], values));
  }
}

const loadKernels = (copies: CudaCopies) => copies.load(readFileSync(KERNELS, 'utf8'), KERNEL_THREADS);
