import { setImmediate } from 'node:timers/promises';
import {
  type DecodeBatch,
  type KvBytes,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
  RunTerminated,
  type SlotStates,
} from '../../../../origin/model/model-runner.ts';

/** Content of one KV position: its token, and how it was computed if that changes its bits. */
type Entry = string;

/** Returns logits as a function of all KV that a position attends to, so any wrong entry changes them. */
function hashedLogits(entries: readonly Entry[], vocabularySize: number): Float32Array {
  let state = 0x811c9dc5;
  for (const entry of entries) {
    for (let at = 0; at < entry.length; at++) state = Math.imul(state ^ entry.charCodeAt(at), 0x01000193);
  }
  return Float32Array.from({ length: vocabularySize }, (_, id) => {
    let mixed = Math.imul(state ^ Math.imul(id + 1, 0x9e3779b1), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return (((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32) * 8 - 4;
  });
}

/** How runs fill the KV cache, and their logits. As in a model, bits depend on the split. */
export const MODEL = {
  prefillEntry: (token: number, position: number, start: number, length: number): Entry =>
    `${token}@${position} prefilled with ${start}+${length}`,
  decodeEntry: (token: number, position: number): Entry => `${token}@${position} decoded`,
  logits: hashedLogits,
};

export interface ScriptedOptions {
  /** Called before every run; throws to make it fail. */
  readonly beforeRun?: (kind: 'decode' | 'prefill' | 'copy') => void;
  /** Called after every run that was not stopped. */
  readonly afterRun?: () => void;
  /** Turns of the event loop per run that can be stopped. */
  readonly turns?: number;
  /** Decode returns a promise. */
  readonly asyncDecode?: boolean;
  /** A slot has a state beside its KV: all entries that it is made of. */
  readonly states?: boolean;
}

/** The entries that a slot's last run began with, and ended with; null if it did not end. */
interface SlotState {
  began: readonly Entry[];
  ended: readonly Entry[] | null;
}

/** A model without weights that records its KV cache. Throws on calls that a real runner cannot serve. */
export class ScriptedRunner implements ModelRunner {
  readonly shape: ModelShape;
  /** Decode ranges and prefill lengths, in order. */
  readonly decodes: { readonly firstSlot: number; readonly rows: number }[] = [];
  readonly prefills: number[] = [];
  /** Numbers of prompts of the runs with several. */
  readonly joined: number[] = [];
  /** The first discarded position of each discard. */
  readonly discards: number[] = [];
  readonly #options: ScriptedOptions;
  readonly #cache: Entry[][];
  /** All entries that `kvBytes` has read. */
  readonly #entries: Entry[] = [];
  readonly states: SlotStates | null;
  readonly #slotStates: SlotState[];
  /** All states that `states` has read. */
  readonly #readStates: (readonly Entry[])[] = [];
  #busy = false;

  constructor(shape: ModelShape, options: ScriptedOptions = {}) {
    this.shape = shape;
    this.#options = options;
    this.#cache = Array.from({ length: shape.slots }, () => []);
    this.#slotStates = Array.from({ length: shape.slots }, () => ({ began: [], ended: null }));
    this.states = options.states ? this.#newStates() : null;
  }

  /** States as the numbers of their entries. */
  #newStates(): SlotStates {
    const states: SlotStates = {
      bytes: 4,
      keep: (slot, position) => {
        const bytes = new Uint8Array(4);
        states.read(slot, position, bytes);
        return { restore: (to, at) => states.write(to, at, bytes) };
      },
      read: (slot, position, bytes) => {
        this.#requireIdle();
        const { began, ended } = this.#slotStates[slot]!;
        const state = [ended, began].find((entries) => entries?.length === position);
        if (!state) throw new Error(`slot ${slot} has no state of position ${position}`);
        bytes.set(new Uint8Array(Int32Array.of(this.#readStates.push(state) - 1).buffer));
      },
      write: (slot, position, bytes) => {
        this.#requireIdle();
        const state = this.#readStates[new Int32Array(bytes.slice().buffer)[0]!]!;
        if (state.length !== position) throw new Error('a state of another position');
        this.#slotStates[slot] = { began: state, ended: null };
      },
    };
    return states;
  }

  /** Returns the state that a run goes on from; null if the slot does not have it. */
  #beginState(slot: number, position: number): readonly Entry[] | null {
    const state = this.#slotStates[slot]!;
    const from = position === 0 ? [] : [state.ended, state.began].find((known) => known?.length === position);
    state.ended = null;
    if (from) state.began = from;
    return from ?? null;
  }

  decode(batch: DecodeBatch, signal?: AbortSignal): Float32Array | Promise<Float32Array> {
    this.#enter('decode');
    this.decodes.push({ firstSlot: batch.firstSlot, rows: batch.rows });
    if (signal && this.#options.turns) return this.#untilDone(signal).then(() => this.#decoded(batch));
    const flat = this.#decoded(batch);
    return this.#options.asyncDecode ? this.#later(flat, 1) : flat;
  }

  #decoded({ firstSlot, rows, tokens, positions }: DecodeBatch): Float32Array {
    if (rows < 1 || firstSlot < 0 || firstSlot + rows > this.shape.slots) throw new Error('bad range');
    const logits = Array.from({ length: rows }, (_, row) => {
      const position = positions[row]!;
      const slot = firstSlot + row;
      const entry = MODEL.decodeEntry(tokens[row]!, position);
      const state = this.#beginState(slot, position);
      if (state) this.#slotStates[slot]!.ended = [...state, entry];
      this.#write(slot, position, entry);
      return this.#logits(slot, position);
    });
    return this.#flat(logits);
  }

  async prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    this.#enter('prefill');
    const { slot, start, tokens, logitsAt } = chunk;
    const { prefillChunk, maxPrefillChunks = 1 } = this.shape;
    const end = start + tokens.length;
    if (tokens.length === 0) throw new Error('an empty run');
    const cellOf = (position: number) => Math.floor(position / prefillChunk);
    if (cellOf(end - 1) - cellOf(start) >= maxPrefillChunks) throw new Error('the run straddles the grid');
    if (tokens.length > prefillChunk && end % prefillChunk === 1) throw new Error('a last row differs alone');
    this.prefills.push(tokens.length);
    await this.#untilDone(signal);
    const state = this.#beginState(slot, start);
    if (this.states && !state) throw new Error(`slot ${slot} has no state of position ${start}`);
    tokens.forEach((token, at) => {
      const first = Math.max(start, cellOf(start + at) * prefillChunk);
      const length = Math.min(end, (cellOf(start + at) + 1) * prefillChunk) - first;
      this.#write(slot, start + at, MODEL.prefillEntry(token, start + at, first, length));
    });
    this.#slotStates[slot]!.ended = [...(state ?? []), ...this.#cache[slot]!.slice(start, end)];
    return this.#flat([...logitsAt].map((at) => this.#logits(slot, start + at)));
  }

  async prefillTogether(prompts: readonly PrefillChunk[], signal: AbortSignal): Promise<Float32Array> {
    this.#enter('prefill');
    const { prefillChunk, maxPrefillChunks = 1, joinsPrompts } = this.shape;
    const longest = Math.max(...prompts.map(({ tokens }) => tokens.length));
    if (!joinsPrompts || prompts.length < 2) throw new Error('no run of several prompts');
    if (longest > prefillChunk || prompts.length * longest > maxPrefillChunks * prefillChunk)
      throw new Error('too many rows');
    this.joined.push(prompts.length);
    await this.#untilDone(signal);
    const logits = prompts.flatMap(({ slot, start, tokens, logitsAt, images }, index) => {
      if (start !== 0 || tokens.length < 2 || images !== undefined) throw new Error('no whole prompt');
      if (slot !== prompts[0]!.slot + index) throw new Error('no neighbouring slots');
      for (let at = 0; at < longest; at++) {
        const entry = MODEL.prefillEntry(tokens[at] ?? 0, at, 0, tokens.length);
        this.#write(slot, at, at < tokens.length ? entry : 'padding');
      }
      return [...logitsAt].map((at) => this.#logits(slot, at));
    });
    return this.#flat(logits);
  }

  /** @throws RunTerminated if the signal stops the run */
  async #untilDone(signal: AbortSignal): Promise<void> {
    this.#busy = true;
    try {
      for (let turn = 0; turn < (this.#options.turns ?? 0); turn++) {
        await setImmediate();
        if (signal.aborted) throw new RunTerminated();
      }
      this.#options.afterRun?.();
    } finally {
      this.#busy = false;
    }
  }

  copy(from: number, to: number, end: number, start = 0): void {
    this.#enter('copy');
    if (end > this.shape.contextLength || from === to) throw new Error('bad copy');
    for (let at = start; at < end; at++) this.#cache[to]![at] = this.#cache[from]![at] ?? 'never written';
  }

  /** Positions as the numbers of their entries. */
  readonly kvBytes: KvBytes = {
    positionBytes: 4,
    read: (slot, start, end, bytes) => {
      this.#requireIdle();
      const numbers = this.#cache[slot]!.slice(start, end).map((entry) => this.#numberOf(entry));
      bytes.set(new Uint8Array(Int32Array.from(numbers).buffer));
    },
    write: (slot, start, parts) => {
      this.#requireIdle();
      const numbers = parts.flatMap((bytes) => [...new Int32Array(bytes.slice().buffer)]);
      for (const [index, number] of numbers.entries()) {
        this.#write(slot, start + index, this.#entries[number] ?? 'never read');
      }
    },
    discard: (slot, start) => {
      this.#requireIdle();
      this.discards.push(start);
      this.#cache[slot]!.length = Math.min(start, this.#cache[slot]!.length);
    },
  };

  dispose(): void {}

  #numberOf(entry: Entry): number {
    const known = this.#entries.indexOf(entry);
    return known >= 0 ? known : this.#entries.push(entry) - 1;
  }

  #requireIdle(): void {
    if (this.#busy) throw new Error('two runs at once');
  }

  #enter(kind: 'decode' | 'prefill' | 'copy'): void {
    this.#requireIdle();
    this.#options.beforeRun?.(kind);
  }

  #write(slot: number, position: number, entry: Entry): void {
    if (!(position >= 0 && position < this.shape.contextLength)) throw new Error(`no position ${position}`);
    const row = this.#cache[slot]!;
    while (row.length < position) row.push('never written');
    row[position] = entry;
  }

  #logits(slot: number, position: number): Float32Array {
    const entries = this.#cache[slot]!.slice(0, position + 1);
    const state = this.states ? this.#slotStates[slot]!.ended : entries;
    if (state === null) return new Float32Array(this.shape.vocabularySize).fill(Number.NaN);
    // A state of other entries than those of the KV is one of another sequence or run.
    const isSame = entries.every((entry, at) => entry === state[at]);
    return MODEL.logits(isSame ? entries : [...entries, ...state], this.shape.vocabularySize);
  }

  #flat(rows: readonly Float32Array[]): Float32Array {
    const flat = new Float32Array(rows.length * this.shape.vocabularySize);
    rows.forEach((row, at) => {
      flat.set(row, at * this.shape.vocabularySize);
    });
    return flat;
  }

  async #later(logits: Float32Array, turns: number): Promise<Float32Array> {
    this.#busy = true;
    for (let turn = 0; turn < turns; turn++) await setImmediate();
    this.#busy = false;
    return logits;
  }
}
