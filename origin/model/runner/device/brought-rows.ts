import type { DecodeBatch } from '../../model-runner.ts';
import type { Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies } from '../../ort/cuda-copies.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { SparseLogits } from '../../sparse-logits.ts';
import type { DeviceDecodeInputs } from './decode-inputs.ts';
import { DeviceLogits, type DeviceLogitsOptions } from './device-logits.ts';

/** The rows of a run whose logits are wanted, and which of them may be sparse. */
export interface AskedRows
  extends Pick<DecodeBatch, 'rows' | 'coldness' | 'draws' | 'idle' | 'continues' | 'joining'> {
  readonly firstRow: number;
}

/** How the rows come from which the device does not draw. */
type RowTransfer = 'whole' | 'sparse' | 'none';

interface BroughtRowsOptions {
  readonly memory: OrtDeviceMemory;
  readonly copies: CudaCopies;
  readonly inputs: DeviceDecodeInputs;
  /** The rows on the device. */
  readonly device: Pointer;
  /** Page-locked memory of at least all slots' logits. */
  readonly logits: SparseLogits;
  /** The addresses of that memory. */
  readonly host: DeviceLogitsOptions['host'];
  /** Brings the rows back to the device if another run has overwritten them. */
  readonly bringBack: () => void;
}

/** Brings to main memory what samplers need of the logits of a decode run. */
export class BroughtRows {
  readonly #options: BroughtRowsOptions;
  #sparse: DeviceLogits | null = null;
  #sparseFault: string | null = null;

  constructor(options: BroughtRowsOptions) {
    this.#options = options;
    try {
      this.#sparse = new DeviceLogits(options);
    } catch (error) {
      this.#sparseFault = (error as Error).message;
    }
  }

  /** Null if runs bring whole rows only. */
  get sparse(): DeviceLogits | null {
    return this.#sparse;
  }

  /** Why runs bring whole rows only; null if that is not so. */
  get sparseFault(): string | null {
    return this.#sparseFault;
  }

  /** Runs bring whole rows from now on. */
  refuseSparse(fault: string): void {
    this.#sparse = null;
    this.#sparseFault = fault;
  }

  /** Writes how each row is wanted. Returns how the rows come that the device does not draw from. */
  begin({ firstRow, rows, coldness, draws, idle }: AskedRows): RowTransfer {
    const { logits, inputs } = this.#options;
    const sparse = this.#sparse;
    logits.clear();
    sparse?.beginRequests();
    if (sparse === null || (coldness === undefined && draws === undefined)) return 'whole';
    inputs.whole.fill(0);
    inputs.coldness.fill(1);
    let drawn = 0;
    for (let index = 0; index < rows; index++) {
      const row = firstRow + index;
      const request = draws?.[index] ?? null;
      const ofRow = coldness?.[index] ?? null;
      if (idle?.[index] || (request !== null && sparse.request(row, request))) {
        logits.beginAbsent(row);
        drawn++;
      } else if (ofRow === null) inputs.whole[row] = 1;
      else {
        inputs.coldness[row] = ofRow;
        logits.begin(row, ofRow);
      }
    }
    return drawn === rows ? 'none' : 'sparse';
  }

  /**
   * Brings what is asked for of the rows of a run, and waits for it.
   * @param rows of the run
   */
  finish(rows: number, asked: AskedRows, transfer: RowTransfer): Float32Array {
    const { copies, inputs, device, logits } = this.#options;
    const brought = this.of(asked);
    const first = BigInt(4 * asked.firstRow * logits.vocabularySize);
    if (transfer === 'whole') copies.toHost(device + first, brought);
    const { block } = inputs;
    const settings = { coldness: block.at(inputs.coldness), whole: block.at(inputs.whole) };
    if (transfer === 'sparse') this.#sparse!.summarize(rows, settings);
    this.#sparse?.draw();
    return brought;
  }

  /** Returns the rows in main memory. */
  of({ firstRow, rows }: AskedRows): Float32Array {
    const { memory, vocabularySize } = this.#options.logits;
    return memory.subarray(firstRow * vocabularySize, (firstRow + rows) * vocabularySize);
  }
}
