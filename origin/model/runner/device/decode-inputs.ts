import type { DecodeBatch, SlotToken } from '../../model-runner.ts';
import { ElementType } from '../../onnx/onnx-graph.ts';
import type { DeviceTensor, Pointer } from '../../ort/bound-tensors.ts';
import type { CudaCopies, CudaWork } from '../../ort/cuda-copies.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';

/** Where the inputs of all rows begin, and the bytes of a row. */
const PARTS = {
  tokens: { at: 0, elementType: 'int64', elementBytes: 8 },
  positions: { at: 8, elementType: 'int64', elementBytes: 8 },
  /** The number of the row. */
  index: { at: 16, elementType: 'int64', elementBytes: 8 },
  lastPositions: { at: 24, elementType: 'int32', elementBytes: 4 },
  coldness: { at: 28, elementType: 'float32', elementBytes: 4 },
  /** 1 = the row comes as a whole. */
  whole: { at: 32, elementType: 'int32', elementBytes: 4 },
} as const;
const ROW_BYTES = 36;

type Part = keyof typeof PARTS;

/** The inputs of decode runs, at a fixed place on the device, to which one copy brings them. */
export class DecodeInputs {
  readonly coldness: Float32Array;
  readonly whole: Int32Array;
  readonly #memory: OrtDeviceMemory;
  readonly #copies: CudaCopies;
  readonly #slots: number;
  readonly #host: bigint;
  readonly #device: Pointer;
  readonly #tokens: BigInt64Array;
  readonly #positions: BigInt64Array;
  readonly #lastPositions: Int32Array;

  constructor(memory: OrtDeviceMemory, copies: CudaCopies, slots: number) {
    this.#memory = memory;
    this.#copies = copies;
    this.#slots = slots;
    const { address, bytes } = copies.hostMemory(ROW_BYTES * slots);
    this.#host = address;
    this.#device = memory.allocate(ROW_BYTES * slots);
    const { buffer, byteOffset } = bytes;
    const at = (part: Part) => byteOffset + PARTS[part].at * slots;
    this.#tokens = new BigInt64Array(buffer, at('tokens'), slots);
    this.#positions = new BigInt64Array(buffer, at('positions'), slots);
    const index = BigInt64Array.from({ length: slots }, (_, row) => BigInt(row));
    new BigInt64Array(buffer, at('index'), slots).set(index);
    this.#lastPositions = new Int32Array(buffer, at('lastPositions'), slots);
    this.coldness = new Float32Array(buffer, at('coldness'), slots);
    this.whole = new Int32Array(buffer, at('whole'), slots);
  }

  write({ rows, tokens, positions }: DecodeBatch): void {
    for (let row = 0; row < rows; row++)
      this.writeRow({ slot: row, token: tokens[row]!, position: positions[row]! });
  }

  writeRow({ slot, token, position }: SlotToken): void {
    this.#tokens[slot] = BigInt(token);
    this.#positions[slot] = BigInt(position);
    this.#lastPositions[slot] = position;
  }

  /** Brings what was written to the device. */
  copy(): void {
    this.#copies.perform((work) => this.bring(work));
  }

  /** Begins to bring what was written, which must not change until then. */
  bring(work: CudaWork): void {
    const bytes = ROW_BYTES * this.#slots;
    const from = { where: 'host', address: this.#host, pitch: bytes } as const;
    work.copy(from, { where: 'device', address: this.#device, pitch: bytes }, bytes, 1);
  }

  /** Where the inputs of all rows begin on the device. */
  at(part: Part): Pointer {
    return this.#memory.at(this.#device, PARTS[part].at * this.#slots);
  }

  /** Describes the first rows as a tensor. */
  tensor(part: Part, dimensions: readonly number[]): DeviceTensor {
    const { elementType, elementBytes } = PARTS[part];
    const { info } = this.#memory;
    return {
      address: this.at(part),
      elementType: ElementType[elementType],
      elementBytes,
      dimensions,
      memory: info,
    };
  }
}
