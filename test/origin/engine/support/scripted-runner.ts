import { setImmediate } from 'node:timers/promises';
import {
  type DecodeBatch,
  type KvBytes,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
  RunTerminated,
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
  #busy = false;

  constructor(shape: ModelShape, options: ScriptedOptions = {}) {
    this.shape = shape;
    this.#options = options;
    this.#cache = Array.from({ length: shape.slots }, () => []);
  }

  decode(batch: DecodeBatch, signal?: AbortSignal): Float32Array | Promise<Float32Array> {
    this.#begin('decode');
    this.decodes.push({ firstSlot: batch.firstSlot, rows: batch.rows });
    if (signal && this.#options.turns) return this.#untilDone(signal).then(() => this.#decoded(batch));
    const flat = this.#decoded(batch);
    return this.#options.asyncDecode ? this.#later(flat, 1) : flat;
  }

  #decoded({ firstSlot, rows, tokens, positions }: DecodeBatch): Float32Array {
    if (rows < 1 || firstSlot < 0 || firstSlot + rows > this.shape.slots) throw new Error('bad range');
    const logits = Array.from({ length: rows }, (_, row) => {
      const position = positions[row]!;
      this.#write(firstSlot + row, position, MODEL.decodeEntry(tokens[row]!, position));
      return this.#logits(firstSlot + row, position);
    });
    return this.#flat(logits);
  }

  async prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    this.#begin('prefill');
    const { slot, start, tokens, logitsAt } = chunk;
    const { prefillChunk, maxPrefillChunks = 1 } = this.shape;
    const end = start + tokens.length;
    if (tokens.length === 0) throw new Error('an empty run');
    const cellOf = (position: number) => Math.floor(position / prefillChunk);
    if (cellOf(end - 1) - cellOf(start) >= maxPrefillChunks) throw new Error('the run straddles the grid');
    if (tokens.length > prefillChunk && end % prefillChunk === 1) throw new Error('a last row differs alone');
    this.prefills.push(tokens.length);
    await this.#untilDone(signal);
    tokens.forEach((token, at) => {
      const first = Math.max(start, cellOf(start + at) * prefillChunk);
      const length = Math.min(end, (cellOf(start + at) + 1) * prefillChunk) - first;
      this.#write(slot, start + at, MODEL.prefillEntry(token, start + at, first, length));
    });
    return this.#flat([...logitsAt].map((at) => this.#logits(slot, start + at)));
  }

  async prefillTogether(prompts: readonly PrefillChunk[], signal: AbortSignal): Promise<Float32Array> {
    this.#begin('prefill');
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
    this.#begin('copy');
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

  #begin(kind: 'decode' | 'prefill' | 'copy'): void {
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
    return MODEL.logits(this.#cache[slot]!.slice(0, position + 1), this.shape.vocabularySize);
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
