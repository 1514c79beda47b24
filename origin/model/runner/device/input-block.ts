import { LAST_POSITIONS, LOGITS_INDEX } from '../../config/decoder-names.ts';
import type { DecoderInterface } from '../../decoder/decoder-interface.ts';
import {
  type DeviceTensor,
  type Elements,
  elementTypeOf,
  type Pointer,
  type RunBinding,
} from '../../ort/bound-tensors.ts';
import type { CudaCopies, CudaWork, HostMemory } from '../../ort/cuda-copies.ts';
import type { OrtDeviceMemory } from '../../ort/ort-device.ts';
import type { BatchInputs, MemoryPart } from '../batch-inputs.ts';

/** Inputs of runs in page-locked memory, at a fixed place on the device, to which one copy brings them. */
export class InputBlock {
  readonly #memory: OrtDeviceMemory;
  readonly #host: HostMemory;
  readonly #device: Pointer;
  #allocated = 0;

  constructor(memory: OrtDeviceMemory, copies: CudaCopies, bytes: number) {
    this.#memory = memory;
    this.#host = copies.hostMemory(bytes);
    this.#device = memory.allocate(bytes);
  }

  /** Returns the next part of the page-locked memory. */
  readonly allocate = (bytes: number): MemoryPart => {
    const { buffer, byteOffset } = this.#host.bytes;
    const part = { buffer: buffer as ArrayBuffer, byteOffset: byteOffset + this.#allocated };
    this.#allocated += bytes;
    return part;
  };

  /** Returns where the device has an array of this memory. */
  at({ byteOffset }: Elements): Pointer {
    return this.#memory.at(this.#device, byteOffset - this.#host.bytes.byteOffset);
  }

  /** Begins to bring all that was written, which must not change until then. */
  bring(work: CudaWork): void {
    const { address, bytes } = this.#host;
    const pitch = bytes.length;
    work.copy({ where: 'host', address, pitch }, { where: 'device', address: this.#device, pitch }, pitch, 1);
  }

  /** Binds the inputs of a run, except the total length, which is to be in main memory. */
  bind(
    binding: RunBinding,
    { tokenInput, positionIds }: DecoderInterface,
    { tokens, positions, logitsIndex, lastPositions }: BatchInputs,
    { sequences, length, logits }: Readonly<Record<'sequences' | 'length' | 'logits', number>>,
  ): void {
    binding.input(tokenInput, this.#tensor(tokens, [sequences, length]));
    if (positionIds !== null) binding.input(positionIds, this.#tensor(positions, [sequences, length]));
    binding.input(LOGITS_INDEX, this.#tensor(logitsIndex, [logits]));
    binding.input(LAST_POSITIONS, this.#tensor(lastPositions, [sequences]));
  }

  /** Describes the beginning of an array on the device. */
  #tensor(array: Elements, dimensions: readonly number[]): DeviceTensor {
    const { BYTES_PER_ELEMENT: elementBytes } = array;
    const elementType = elementTypeOf(array);
    return { address: this.at(array), elementType, elementBytes, dimensions, memory: this.#memory.info };
  }
}
