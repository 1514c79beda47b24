import type { CudaCopies } from '../../ort/cuda-copies.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import { bytesOfInputs, DecodeInputs } from '../batch-inputs.ts';
import { InputBlock } from './input-block.ts';

const WORD = 4;

/** The inputs of decode runs on a device, and what each row of logits is to be. */
export class DeviceDecodeInputs extends DecodeInputs {
  readonly block: InputBlock;
  readonly coldness: Float32Array<ArrayBuffer>;
  /** 1 = the row comes as a whole. */
  readonly whole: Int32Array<ArrayBuffer>;
  readonly #copies: CudaCopies;

  constructor(memory: OrtDeviceMemory, copies: CudaCopies, slots: number, contextLength: number) {
    const bytes = WORD * slots;
    const block = new InputBlock(memory, copies, bytesOfInputs(slots, slots, slots) + 2 * bytes);
    super(slots, contextLength, block.allocate);
    const [coldness, whole] = [block.allocate(bytes), block.allocate(bytes)];
    this.block = block;
    this.coldness = new Float32Array(coldness.buffer, coldness.byteOffset, slots);
    this.whole = new Int32Array(whole.buffer, whole.byteOffset, slots);
    this.#copies = copies;
  }

  /** Brings what was written to the device. */
  copy(): void {
    this.#copies.perform((work) => this.block.bring(work));
  }
}
