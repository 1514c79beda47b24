import type { BlockKernel } from '../sampling/block-kernel.ts';
import { COLDNESS, HIGHEST, LOGITS, MAXIMA, maximaGraph, SUMS, sumsGraph, TOTALS } from './block-graphs.ts';
import { ElementType } from './onnx-graph.ts';
import type { BoundTensor, OrtBinding } from './ort-binding.ts';
import { type OrtApi, openOrtApi } from './ort-capi.ts';
import { OrtSession } from './ort-session.ts';

/** From here on the kernel's runs, some 10 µs each, are small against what they save. */
const LARGE_VOCABULARY = 32_768;

/** A multiple of every vector's width, so that no element's bits depend on where in the row it stands. */
const BLOCK_SIZE = 128;

/** For vocabularies that are worth it; logits are in the CPU's memory whatever the model runs on. */
export function openBlockKernel(vocabularySize: number): OrtBlockKernel | null {
  return vocabularySize > LARGE_VOCABULARY ? new OrtBlockKernel(openOrtApi(), vocabularySize) : null;
}

/**
 * A BlockKernel over ONNX Runtime's vectorised operators on the calling thread. One row per run: a row and what is made
 * of it stay in the processor's cache, nothing is computed that no sampler asks for, and no row can influence another.
 * That a row's position in memory does not either is tested, not promised by ONNX Runtime.
 */
export class OrtBlockKernel implements BlockKernel {
  readonly blockSize = BLOCK_SIZE;
  readonly #api: OrtApi;
  readonly #blocks: number;
  readonly #maximaSession: OrtSession;
  readonly #sumsSession: OrtSession;
  readonly #maximaBinding: OrtBinding;
  readonly #sumsBinding: OrtBinding;
  readonly #maxima: Float32Array<ArrayBuffer>;
  readonly #totals: Float32Array<ArrayBuffer>;
  readonly #sums: Float32Array<ArrayBuffer>;
  readonly #highest = offHeap(1);
  readonly #coldness = offHeap(1);

  /** @param vocabularySize length of the rows, a block at least */
  constructor(api: OrtApi, vocabularySize: number) {
    const blocks = Math.floor(vocabularySize / BLOCK_SIZE);
    this.#api = api;
    this.#blocks = blocks;
    this.#maxima = offHeap(blocks);
    this.#totals = offHeap(blocks);
    this.#sums = offHeap(blocks);
    this.#maximaSession = new OrtSession(api, maximaGraph(), { threads: 1, directory: '' });
    this.#sumsSession = new OrtSession(api, sumsGraph(), { threads: 1, directory: '' });
    this.#maximaBinding = this.#maximaSession.createBinding();
    this.#maximaBinding.output(MAXIMA, this.#tensor(this.#maxima, [blocks, 1]));
    this.#maximaBinding.output(TOTALS, this.#tensor(this.#totals, [blocks, 1]));
    this.#sumsBinding = this.#sumsSession.createBinding();
    this.#sumsBinding.input(HIGHEST, this.#tensor(this.#highest, [1]));
    this.#sumsBinding.input(COLDNESS, this.#tensor(this.#coldness, [1]));
    this.#sumsBinding.output(SUMS, this.#tensor(this.#sums, [blocks, 1]));
  }

  maxima(row: Float32Array, maxima: Float32Array): boolean {
    this.#maximaBinding.input(LOGITS, this.#tensor(row, [this.#blocks, BLOCK_SIZE]));
    this.#maximaSession.run(this.#maximaBinding);
    maxima.set(this.#maxima);
    // −∞ is fine; +∞ may also be a sum out of range, which costs a closer look.
    for (let block = 0; block < this.#blocks; block++) {
      if (!(this.#totals[block]! < Number.POSITIVE_INFINITY)) return false;
    }
    return true;
  }

  sums(row: Float32Array, highest: number, coldness: number, sums: Float64Array): void {
    this.#highest[0] = highest;
    this.#coldness[0] = coldness;
    this.#sumsBinding.input(LOGITS, this.#tensor(row, [this.#blocks, BLOCK_SIZE]));
    this.#sumsSession.run(this.#sumsBinding);
    sums.set(this.#sums);
  }

  dispose(): void {
    this.#maximaBinding.dispose();
    this.#sumsBinding.dispose();
    this.#maximaSession.dispose();
    this.#sumsSession.dispose();
  }

  #tensor(memory: Float32Array, dimensions: readonly number[]): BoundTensor {
    const address = this.#api.addressOf(memory);
    return { address, elementType: ElementType.float32, elementBytes: 4, dimensions };
  }
}

/** Short arrays of their own would lie on V8's heap, where they move. */
function offHeap(length: number): Float32Array<ArrayBuffer> {
  return new Float32Array(new ArrayBuffer(4 * length));
}
