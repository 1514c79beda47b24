import { FROM_ROWS, resultName, sourceName, TO_ROWS, targetName } from '../onnx/row-copy-graph.ts';
import { arrayTensor, type BoundTensor } from '../ort/ort-binding.ts';
import type { OrtSession } from '../ort/ort-session.ts';

/** Row `from[i]` of the sources goes to row `to[i]` of the targets. */
export interface RowMoves {
  readonly from: BigInt64Array<ArrayBuffer>;
  readonly to: BigInt64Array<ArrayBuffer>;
}

/**
 * Copies rows between matrices [rows, width] in device memory, because the C API copies only whole tensors. Source and
 * target may be the same memory. Owns the session, which runs a `rowCopyGraph`.
 */
export class OrtRowCopier {
  readonly #session: OrtSession;

  constructor(session: OrtSession) {
    this.#session = session;
  }

  /** @param targets one per source, in the number that the graph was made for */
  copy(sources: readonly BoundTensor[], targets: readonly BoundTensor[], { from, to }: RowMoves): void {
    const binding = this.#session.createBinding();
    try {
      binding.input(FROM_ROWS, arrayTensor(this.#session.api, from, [from.length]));
      binding.input(TO_ROWS, arrayTensor(this.#session.api, to, [to.length, 1]));
      for (const [index, source] of sources.entries()) {
        binding.input(sourceName(index), source);
        binding.inPlace(targetName(index), resultName(index), targets[index]!);
      }
      this.#session.run(binding);
    } finally {
      binding.dispose();
    }
  }

  dispose(): void {
    this.#session.dispose();
  }
}
