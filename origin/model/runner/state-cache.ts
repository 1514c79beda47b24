import { bytesOfState, type StateTensor, sizeOfState } from '../decoder/state-tensors.ts';
import type { KeptState, SlotStates } from '../model-runner.ts';
import type { BoundTensor, HostMemory, RunBinding } from '../ort/bound-tensors.ts';
import { KvCache, type KvStore, type StoredKv, type StoreSizes } from './kv-cache.ts';

/** A position that no slot has. */
const NONE = -1;

/** One of two memories for the states of all slots. */
export type StatePlace = 0 | 1;

/** The state of one slot, kept outside of both places. */
export interface KeptRow {
  readonly isLost?: boolean;
  restore(slot: number, place: StatePlace): void;
}

/** Opens a store in some memory. */
type OpenStore = (decoder: StoredKv, layout: StoreSizes) => KvStore;

/** The states of all slots, in two places: a slot's state is stored as the KV of one position. */
export class StateMemory {
  readonly #tensors: readonly StateTensor[];
  readonly #open: OpenStore;
  readonly #places: readonly [KvStore, KvStore];

  constructor(tensors: readonly StateTensor[], slots: number, open: OpenStore) {
    this.#tensors = tensors;
    this.#open = open;
    this.#places = [this.newStore(slots), this.newStore(slots)];
  }

  protected newStore(slots: number): KvStore {
    const kv = this.#tensors.map((tensor) => {
      return { ...tensor, shared: [], heads: 1, headSize: sizeOfState(tensor) };
    });
    const positionBytes = bytesOfState(this.#tensors);
    return this.#open({ kv, kvType: 'float32' }, { slots, contextLength: 1, positionBytes });
  }

  protected store(place: StatePlace): KvStore {
    return this.#places[place];
  }

  /** Returns the states of neighbouring slots, tensor by tensor: [rows, …dimensions]. */
  tensors(place: StatePlace, firstSlot: number, rows: number): readonly BoundTensor[] {
    return this.store(place)
      .tensors(firstSlot, rows)
      .map((tensor, index) => ({ ...tensor, dimensions: [rows, ...this.#tensors[index]!.dimensions] }));
  }

  /** Fills a slot's state with zeros. */
  clear(place: StatePlace, slot: number): void {
    this.store(place).clear(slot);
  }

  copy(slot: number, from: StatePlace, to: StatePlace): void {
    this.store(from).copyTo(this.store(to), stateOf(slot), slot);
  }

  /** Keeps a slot's state in main memory. */
  keep(place: StatePlace, slot: number): KeptRow {
    const bytes = new Uint8Array(bytesOfState(this.#tensors));
    this.read(place, slot, bytes);
    return { restore: (to, into) => this.write(into, to, bytes) };
  }

  read(place: StatePlace, slot: number, bytes: Uint8Array): void {
    this.store(place).read(slot, 0, 1, bytes);
  }

  write(place: StatePlace, slot: number, bytes: Uint8Array): void {
    this.store(place).write(slot, 0, [bytes]);
  }
}

/** The position of a store in which a slot's state is. */
export const stateOf = (slot: number) => ({ slot, start: 0, end: 1 });

/** The states of all slots in CPU memory. */
export class HostStates extends StateMemory {
  constructor(api: HostMemory, tensors: readonly StateTensor[], slots: number) {
    super(tensors, slots, (decoder, layout) => new KvCache(api, decoder, layout));
  }
}

/** The states that a run goes on from. */
export interface BegunRun {
  readonly from: StatePlace;
  /** By row: whether its slot has the state. */
  readonly begun: readonly boolean[];
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
