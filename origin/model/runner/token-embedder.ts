import type { EmbeddedImage } from '../model-runner.ts';
import type { RunBinding, RunSession } from '../ort/bound-tensors.ts';
import { arrayTensor, type BoundTensor } from '../ort/bound-tensors.ts';
import { allocateInt64 } from './batch-inputs.ts';

interface EmbedderOptions {
  /** int64 ids [batch, sequence]. */
  readonly input: string;
  /** float32 vectors [batch, sequence, size]. */
  readonly output: string;
  readonly size: number;
  /** Maximum number of tokens of a run. */
  readonly capacity: number;
}

/**
 * Converts tokens into vectors for a decoder without an embedding, and inserts images. Each vector is its
 * token's row of the table, so it cannot depend on the others. Owns the session of embed_tokens.
 */
export class TokenEmbedder {
  readonly #session: RunSession;
  readonly #options: EmbedderOptions;
  readonly #ids: BigInt64Array<ArrayBuffer>;
  readonly #vectors: Float32Array<ArrayBuffer>;
  /** By number of tokens. */
  readonly #bindings = new Map<number, RunBinding>();
  #disposed = false;

  constructor(session: RunSession, options: EmbedderOptions) {
    this.#session = session;
    this.#options = options;
    this.#ids = allocateInt64(options.capacity);
    this.#vectors = new Float32Array(new ArrayBuffer(4 * options.capacity * options.size));
  }

  /** Computes the vectors of the first `count` tokens on the calling thread. */
  embed(tokens: Int32Array, count: number, images: readonly EmbeddedImage[] = []): void {
    for (let i = 0; i < count; i++) this.#ids[i] = BigInt(tokens[i]!);
    this.#session.run(this.#binding(count));
    for (const { at, vectors } of images) this.#vectors.set(vectors, at * this.#options.size);
  }

  /** Returns the vectors of the last `embed` as [...dimensions, size], always in the same memory. */
  vectors(dimensions: readonly number[]): BoundTensor {
    return arrayTensor(this.#session.api, this.#vectors, [...dimensions, this.#options.size]);
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    for (const binding of this.#bindings.values()) binding.dispose();
    this.#bindings.clear();
    this.#session.dispose();
  }

  #binding(count: number): RunBinding {
    const kept = this.#bindings.get(count);
    if (kept !== undefined) return kept;
    const binding = this.#session.bound((made) => {
      made.input(this.#options.input, arrayTensor(this.#session.api, this.#ids, [1, count]));
      made.output(this.#options.output, this.vectors([1, count]));
    });
    this.#bindings.set(count, binding);
    return binding;
  }
}
