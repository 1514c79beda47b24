import { setImmediate } from 'node:timers/promises';
import {
  type DecodeBatch,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
  RunTerminated,
} from '../../../origin/model/model-runner.ts';

/** What one position of the KV cache holds: its token, and how it was computed, because that decides its bits. */
type Entry = string;

export const prefillEntry = (token: number, position: number, start: number, length: number): Entry =>
  `${token}@${position} prefilled with ${start}+${length}`;
export const decodeEntry = (token: number, position: number): Entry => `${token}@${position} decoded`;

/** Logits as a function of everything the attention of a position sees; anything wrong in the cache changes them. */
export function scriptedLogits(entries: readonly Entry[], vocabularySize: number): Float32Array {
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

export interface ScriptedOptions {
  /** Called before every run; may throw to let it fail. */
  readonly beforeRun?: (kind: 'decode' | 'prefill' | 'copy') => void;
  /** Turns of the event loop a prefill takes. */
  readonly prefillTurns?: number;
  /** Decode answers with a promise. */
  readonly asyncDecode?: boolean;
}

/** A model without weights that remembers what is in its KV cache and refuses what the real one could not do. */
export class ScriptedRunner implements ModelRunner {
  readonly shape: ModelShape;
  /** Contiguous decode ranges and prefilled token counts, in order. */
  readonly decodes: { readonly firstSlot: number; readonly rows: number }[] = [];
  readonly prefills: number[] = [];
  readonly #options: ScriptedOptions;
  readonly #cache: Entry[][];
  #busy = false;

  constructor(shape: ModelShape, options: ScriptedOptions = {}) {
    this.shape = shape;
    this.#options = options;
    this.#cache = Array.from({ length: shape.slots }, () => []);
  }

  decode(batch: DecodeBatch): Float32Array | Promise<Float32Array> {
    this.#begin('decode');
    const { firstSlot, rows, tokens, positions } = batch;
    this.decodes.push({ firstSlot, rows });
    if (rows < 1 || firstSlot < 0 || firstSlot + rows > this.shape.slots) throw new Error('bad range');
    const logits = Array.from({ length: rows }, (_, row) => {
      const position = positions[row]!;
      this.#write(firstSlot + row, position, decodeEntry(tokens[row]!, position));
      return this.#logits(firstSlot + row, position);
    });
    const flat = this.#flat(logits);
    return this.#options.asyncDecode ? this.#later(flat, 1) : flat;
  }

  async prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    this.#begin('prefill');
    const { slot, start, tokens, logitsAt } = chunk;
    const cell = Math.floor(start / this.shape.prefillChunk);
    if (tokens.length === 0 || Math.floor((start + tokens.length - 1) / this.shape.prefillChunk) !== cell) {
      throw new Error('the chunk straddles the grid');
    }
    this.prefills.push(tokens.length);
    this.#busy = true;
    try {
      for (let turn = 0; turn < (this.#options.prefillTurns ?? 0); turn++) {
        await setImmediate();
        if (signal.aborted) throw new RunTerminated();
      }
    } finally {
      this.#busy = false;
    }
    tokens.forEach((token, at) => {
      this.#write(slot, start + at, prefillEntry(token, start + at, start, tokens.length));
    });
    return this.#flat([...logitsAt].map((at) => this.#logits(slot, start + at)));
  }

  copy(from: number, to: number, length: number): void {
    this.#begin('copy');
    if (length > this.shape.contextLength || from === to) throw new Error('bad copy');
    for (let at = 0; at < length; at++) this.#cache[to]![at] = this.#cache[from]![at] ?? 'never written';
  }

  dispose(): void {}

  #begin(kind: 'decode' | 'prefill' | 'copy'): void {
    if (this.#busy) throw new Error('two runs at once');
    this.#options.beforeRun?.(kind);
  }

  #write(slot: number, position: number, entry: Entry): void {
    if (!(position >= 0 && position < this.shape.contextLength)) throw new Error(`no position ${position}`);
    const row = this.#cache[slot]!;
    while (row.length < position) row.push('never written');
    row[position] = entry;
  }

  #logits(slot: number, position: number): Float32Array {
    return scriptedLogits(this.#cache[slot]!.slice(0, position + 1), this.shape.vocabularySize);
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
