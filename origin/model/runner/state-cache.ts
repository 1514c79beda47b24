import type { StateTensor } from '../decoder/state-tensors.ts';
import type { KeptState, SlotStates } from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import type { BoundTensor, HostMemory, Pointer, RunBinding } from '../ort/bound-tensors.ts';

/** A position that no slot has. */
const NONE = -1;

/** One of two memories for the states of all slots. */
export type StatePlace = 0 | 1;

/** The state of one slot, kept outside of both places. */
export interface KeptRow {
  readonly isLost?: boolean;
  restore(slot: number, place: StatePlace): void;
}

/** Memory of the states of all slots, in two places. */
export interface StateMemory {
  /** Returns the states of neighbouring slots, tensor by tensor: [rows, …dimensions]. */
  tensors(place: StatePlace, firstSlot: number, rows: number): readonly BoundTensor[];
  /** Fills a slot's state with zeros. */
  clear(place: StatePlace, slot: number): void;
  copy(slot: number, from: StatePlace, to: StatePlace): void;
  keep(place: StatePlace, slot: number): KeptRow;
  read(place: StatePlace, slot: number, bytes: Uint8Array): void;
  write(place: StatePlace, slot: number, bytes: Uint8Array): void;
}

/** Keeps a slot's state in main memory. @param stateBytes of one slot */
export function keepInMainMemory(
  memory: Pick<StateMemory, 'read' | 'write'>,
  stateBytes: number,
  place: StatePlace,
  slot: number,
): KeptRow {
  const bytes = new Uint8Array(stateBytes);
  memory.read(place, slot, bytes);
  return { restore: (to, into) => memory.write(into, to, bytes) };
}

/** Describes the states of slots as a tensor, without its memory. */
export const stateTensor = ({ dimensions }: StateTensor, rows: number) => ({
  elementType: ElementType.float32,
  elementBytes: Float32Array.BYTES_PER_ELEMENT,
  dimensions: [rows, ...dimensions],
});

/** Places of the states of slots, [slots, …dimensions]. */
interface StateBuffer {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly address: Pointer;
  /** Bytes of one slot. */
  readonly rowBytes: number;
}

export const rowBytesOf = ({ dimensions }: StateTensor): number =>
  dimensions.reduce((product, size) => product * size, Float32Array.BYTES_PER_ELEMENT);

/** Returns the bytes of one slot's state. */
export const bytesOfState = (states: readonly StateTensor[]): number =>
  states.reduce((sum, state) => sum + rowBytesOf(state), 0);

/** The states that a run goes on from. */
export interface BegunRun {
  readonly from: StatePlace;
  /** By row: whether its slot has the state. */
  readonly begun: readonly boolean[];
}

/** The states of all slots in CPU memory. */
export class HostStates implements StateMemory {
  readonly #tensors: readonly StateTensor[];
  readonly #places: readonly [readonly StateBuffer[], readonly StateBuffer[]];

  constructor(api: HostMemory, tensors: readonly StateTensor[], slots: number) {
    const allocate = (tensor: StateTensor): StateBuffer => {
      const rowBytes = rowBytesOf(tensor);
      const bytes = api.allocate(slots * rowBytes);
      return { bytes, address: api.addressOf(bytes), rowBytes };
    };
    this.#tensors = tensors;
    this.#places = [tensors.map(allocate), tensors.map(allocate)];
  }

  tensors(place: StatePlace, firstSlot: number, rows: number): BoundTensor[] {
    return this.#places[place].map(({ bytes, address, rowBytes }, index) => ({
      ...stateTensor(this.#tensors[index]!, rows),
      owner: bytes,
      address: address + BigInt(firstSlot * rowBytes),
    }));
  }

  clear(place: StatePlace, slot: number): void {
    for (const row of this.#rows(place, slot)) row.fill(0);
  }

  copy(slot: number, from: StatePlace, to: StatePlace): void {
    const source = this.#rows(from, slot);
    for (const [index, row] of this.#rows(to, slot).entries()) row.set(source[index]!);
  }

  keep(place: StatePlace, slot: number): KeptRow {
    return keepInMainMemory(this, bytesOfState(this.#tensors), place, slot);
  }

  read(place: StatePlace, slot: number, bytes: Uint8Array): void {
    let at = 0;
    for (const row of this.#rows(place, slot)) {
      bytes.set(row, at);
      at += row.length;
    }
  }

  write(place: StatePlace, slot: number, bytes: Uint8Array): void {
    let at = 0;
    for (const row of this.#rows(place, slot)) {
      row.set(bytes.subarray(at, at + row.length));
      at += row.length;
    }
  }

  #rows(place: StatePlace, slot: number): Uint8Array[] {
    return this.#places[place].map(({ bytes, rowBytes }) =>
      bytes.subarray(slot * rowBytes, (slot + 1) * rowBytes),
    );
  }
}

/**
 * The state of every slot, in two places. A run reads it in one and writes it in the other, and the next run
 * says by its position which of them it goes on from. So a run that was stopped, or a row of no sequence,
 * changes nothing, and rows that all go on from where they ended are not copied.
 */
export class StateCache implements SlotStates {
  readonly bytes: number;
  readonly #tensors: readonly StateTensor[];
  readonly #memory: StateMemory;
  /** By slot: where its last run began. It ended in the other place. */
  readonly #place: Uint8Array;
  /** By slot: the position where its last run began, and where it ended. */
  readonly #began: Int32Array;
  readonly #ended: Int32Array;

  constructor(memory: StateMemory, tensors: readonly StateTensor[], slots: number) {
    this.bytes = bytesOfState(tensors);
    this.#tensors = tensors;
    this.#memory = memory;
    this.#place = new Uint8Array(slots);
    this.#began = new Int32Array(slots);
    this.#ended = new Int32Array(slots).fill(NONE);
  }

  /** Binds slots firstSlot … firstSlot + rows − 1 for a run that goes on from a place. */
  bind(binding: RunBinding, firstSlot: number, rows: number, from: StatePlace): void {
    const inputs = this.#memory.tensors(from, firstSlot, rows);
    const outputs = this.#memory.tensors(otherThan(from), firstSlot, rows);
    for (const [index, { past, present }] of this.#tensors.entries()) {
      binding.input(past, inputs[index]!);
      binding.output(present, outputs[index]!);
    }
  }

  /** Makes a run of neighbouring slots go on from a position each, in the place where most of them are. */
  begin(firstSlot: number, positions: ArrayLike<number>, rows: number): BegunRun {
    const slots = Array.from({ length: rows }, (_, row) => firstSlot + row);
    const places = slots.map((slot, row) => this.#placeOf(slot, positions[row]!));
    const inSecond = slots.filter((slot, row) => (places[row] ?? this.#place[slot]) === 1);
    const from = 2 * inSecond.length > rows ? 1 : 0;
    return { from, begun: slots.map((slot, row) => this.#move(slot, positions[row]!, places[row]!, from)) };
  }

  /** Notes that a run has ended at a position of a slot. */
  end(slot: number, position: number): void {
    this.#ended[slot] = position;
  }

  keep(slot: number, position: number): KeptState {
    const kept = this.#memory.keep(this.#requirePlace(slot, position), slot);
    return {
      get isLost() {
        return kept.isLost ?? false;
      },
      restore: (to, at) => {
        kept.restore(to, this.#place[to] as StatePlace);
        this.#beginAt(to, at);
      },
    };
  }

  read(slot: number, position: number, bytes: Uint8Array): void {
    this.#memory.read(this.#requirePlace(slot, position), slot, bytes);
  }

  write(slot: number, position: number, bytes: Uint8Array): void {
    this.#memory.write(this.#place[slot] as StatePlace, slot, bytes);
    this.#beginAt(slot, position);
  }

  #beginAt(slot: number, position: number): void {
    this.#began[slot] = position;
    this.#ended[slot] = NONE;
  }

  #requirePlace(slot: number, position: number): StatePlace {
    const place = this.#placeOf(slot, position);
    if (place === null) throw new Error(`slot ${slot} has no state of position ${position}`);
    return place;
  }

  #placeOf(slot: number, position: number): StatePlace | null {
    const began = this.#place[slot] as StatePlace;
    if (position === this.#ended[slot]) return otherThan(began);
    return position === this.#began[slot] ? began : null;
  }

  /**
   * Brings the state of a position to the place that a run reads, because it overwrites the other one. A slot
   * without that state keeps the one where its last run began.
   * @returns whether the slot has it
   */
  #move(slot: number, position: number, place: StatePlace | null, from: StatePlace): boolean {
    const begins = place === null && position === 0;
    const source = place ?? (this.#place[slot] as StatePlace);
    if (begins) this.#memory.clear(from, slot);
    else if (source !== from) this.#memory.copy(slot, source, from);
    this.#place[slot] = from;
    this.#ended[slot] = NONE;
    if (place === null && !begins) return false;
    this.#began[slot] = position;
    return true;
  }
}

const otherThan = (place: StatePlace): StatePlace => (place === 0 ? 1 : 0);
