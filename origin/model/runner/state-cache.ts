import type { SlotStates } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import type { OrtBinding } from '../ort/ort-binding.ts';
import type { OrtApi, Pointer } from '../ort/ort-capi.ts';

/** A state that a graph reads and writes as a whole, in float32. */
export interface StateTensor {
  readonly past: string;
  readonly present: string;
  /** Of one row. */
  readonly dimensions: readonly number[];
}

/** The state of positions that a slot does not have. */
const NONE = -1;

/** States of all slots, [slots, …dimensions], where a run begins or where it ends. */
interface StateBuffer {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly address: Pointer;
  /** Bytes of one slot. */
  readonly rowBytes: number;
}

const rowBytesOf = ({ dimensions }: StateTensor): number =>
  dimensions.reduce((product, size) => product * size, Float32Array.BYTES_PER_ELEMENT);

/** Returns the bytes of one slot's state. */
export const bytesOfState = (states: readonly StateTensor[]): number =>
  states.reduce((sum, state) => sum + rowBytesOf(state), 0);

/**
 * The state of every slot in CPU memory. A run reads it at one place and writes it at another, and the next
 * run says by its position which of them it goes on from. So a run that was stopped, or a row of no sequence,
 * changes nothing.
 */
export class StateCache implements SlotStates {
  readonly bytes: number;
  readonly #tensors: readonly StateTensor[];
  readonly #past: readonly StateBuffer[];
  readonly #present: readonly StateBuffer[];
  /** By slot: the position of the state in `#past`, and of that in `#present`. */
  readonly #began: Int32Array;
  readonly #ended: Int32Array;

  constructor(api: OrtApi, tensors: readonly StateTensor[], slots: number) {
    const allocate = (tensor: StateTensor): StateBuffer => {
      const rowBytes = rowBytesOf(tensor);
      const bytes = new Uint8Array(new ArrayBuffer(slots * rowBytes));
      return { bytes, address: api.addressOf(bytes), rowBytes };
    };
    this.bytes = bytesOfState(tensors);
    this.#tensors = tensors;
    this.#past = tensors.map(allocate);
    this.#present = tensors.map(allocate);
    this.#began = new Int32Array(slots);
    this.#ended = new Int32Array(slots).fill(NONE);
  }

  /** Binds slots firstSlot … firstSlot + rows − 1. */
  bind(binding: OrtBinding, firstSlot: number, rows: number): void {
    for (const [index, { past, present, dimensions }] of this.#tensors.entries()) {
      const tensor = ({ bytes, address, rowBytes }: StateBuffer) => ({
        owner: bytes,
        address: address + BigInt(firstSlot * rowBytes),
        elementType: ElementType.float32,
        elementBytes: Float32Array.BYTES_PER_ELEMENT,
        dimensions: [rows, ...dimensions],
      });
      binding.input(past, tensor(this.#past[index]!));
      binding.output(present, tensor(this.#present[index]!));
    }
  }

  /** Makes a run go on from a position of a slot. False if the slot has no state of it. */
  begin(slot: number, position: number): boolean {
    const ended = this.#ended[slot]!;
    this.#ended[slot] = NONE;
    if (position === 0) for (const row of this.#rows(this.#past, slot)) row.fill(0);
    else if (position === ended) this.#keepPresent(slot);
    else return position === this.#began[slot];
    this.#began[slot] = position;
    return true;
  }

  /** Notes that a run has ended at a position of a slot. */
  end(slot: number, position: number): void {
    this.#ended[slot] = position;
  }

  read(slot: number, position: number, bytes: Uint8Array): void {
    const isEnd = position === this.#ended[slot];
    if (!isEnd && position !== this.#began[slot]) {
      throw new Error(`slot ${slot} has no state of position ${position}`);
    }
    let at = 0;
    for (const row of this.#rows(isEnd ? this.#present : this.#past, slot)) {
      bytes.set(row, at);
      at += row.length;
    }
  }

  write(slot: number, position: number, bytes: Uint8Array): void {
    let at = 0;
    for (const row of this.#rows(this.#past, slot)) {
      row.set(bytes.subarray(at, at + row.length));
      at += row.length;
    }
    this.#began[slot] = position;
    this.#ended[slot] = NONE;
  }

  #keepPresent(slot: number): void {
    const present = this.#rows(this.#present, slot);
    for (const [index, row] of this.#rows(this.#past, slot).entries()) row.set(present[index]!);
  }

  #rows(buffers: readonly StateBuffer[], slot: number): Uint8Array[] {
    return buffers.map(({ bytes, rowBytes }) => bytes.subarray(slot * rowBytes, (slot + 1) * rowBytes));
  }
}
