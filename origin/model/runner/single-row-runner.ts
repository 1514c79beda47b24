import type {
  DecodeBatch,
  KvBytes,
  ModelRunner,
  ModelShape,
  PrefillChunk,
  SlotStates,
} from '../model-runner.ts';
import { type AllocateLogits, inOrdinaryMemory } from './runner-options.ts';

/**
 * Decodes every row of a batch in a separate run, for models whose rows influence each other (int8 with
 * activations scaled per tensor), and for devices that bind one slot. Slower, but each row keeps its bits.
 */
export class SingleRowRunner implements ModelRunner {
  readonly shape: ModelShape;
  readonly #inner: ModelRunner;
  readonly #logits: Float32Array;

  constructor(inner: ModelRunner, allocateLogits: AllocateLogits = inOrdinaryMemory) {
    this.#inner = inner;
    this.shape = { ...inner.shape, minRows: 1, rowMultiple: 1 };
    this.#logits = allocateLogits(inner.shape.slots * inner.shape.vocabularySize);
  }

  get kvBytes(): KvBytes {
    return this.#inner.kvBytes;
  }

  get states(): SlotStates | null {
    return this.#inner.states ?? null;
  }

  async decode(batch: DecodeBatch, signal?: AbortSignal): Promise<Float32Array> {
    const { firstSlot, rows, tokens, positions } = batch;
    const { vocabularySize } = this.shape;
    for (let row = 0; row < rows; row++) {
      const single = {
        firstSlot: firstSlot + row,
        rows: 1,
        tokens: tokens.subarray(row, row + 1),
        positions: positions.subarray(row, row + 1),
      };
      const logits = await this.#inner.decode(single, signal);
      this.#logits.set(logits, row * vocabularySize);
    }
    return this.#logits.subarray(0, rows * vocabularySize);
  }

  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    return this.#inner.prefill(chunk, signal);
  }

  copy(from: number, to: number, end: number, start?: number): void {
    this.#inner.copy(from, to, end, start);
  }

  dispose(): void {
    this.#inner.dispose();
  }
}
