import { LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH } from '../../../origin/model/config/decoder-names.ts';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { type DecoderInterface, describeDecoder } from '../../../origin/model/decoder/decoder-interface.ts';
import { patchDecoder } from '../../../origin/model/foreign/patch-decoder.ts';
import { withIntegerProducts } from '../../../origin/model/onnx/integer-products.ts';
import { arrayTensor, type RunBinding, type RunSession } from '../../../origin/model/ort/bound-tensors.ts';
import { loadSession, readGraphFile } from '../../../origin/model/ort/graph-file.ts';
import { allocateInt64 } from '../../../origin/model/runner/batch-inputs.ts';
import { KvCache, kvLayout } from '../../../origin/model/runner/kv-cache.ts';

export interface CeilingOptions {
  readonly batch: number;
  readonly threads: number;
  /** Tokens already in every row: the mean length of a measured stream. */
  readonly context: number;
  readonly ms: number;
}

/** A graph that the product runs, with every input and output bound once, and the bound memory. */
export class BareLoop {
  readonly #session: RunSession;
  readonly #binding: RunBinding;
  /** Keeps the memory alive, because ONNX Runtime holds only its address. */
  readonly #cache: KvCache;
  readonly #tokens: BigInt64Array<ArrayBuffer>;
  readonly #positions: BigInt64Array<ArrayBuffer>;
  readonly #lastPositions: Int32Array<ArrayBuffer>;
  /** Total length and logits index: bound, and the same in every run. */
  readonly #constants: readonly [Int32Array<ArrayBuffer>, BigInt64Array<ArrayBuffer>];
  readonly logits: Float32Array<ArrayBuffer>;
  readonly #width: number;

  /** @param session of the patched model. The loop owns it. */
  constructor(
    session: RunSession,
    decoder: DecoderInterface,
    { batch, context, output }: { batch: number; context: number; output: string },
  ) {
    const { api } = session;
    this.#session = session;
    this.#cache = new KvCache(api, decoder, kvLayout(decoder, batch, Math.min(decoder.maxPositions, 1024)));
    this.#width = context + 1;
    this.#tokens = allocateInt64(batch);
    this.#positions = allocateInt64(batch);
    this.#lastPositions = new Int32Array(new ArrayBuffer(4 * batch));
    const rows = BigInt64Array.from({ length: batch }, (_, row) => BigInt(row));
    this.#constants = [Int32Array.of(this.#width), rows];
    this.logits = new Float32Array(new ArrayBuffer(4 * batch * decoder.vocabularySize));
    this.#binding = session.bound((binding) => {
      binding.input('input_ids', arrayTensor(api, this.#tokens, [batch, 1]));
      binding.input(LAST_POSITIONS, arrayTensor(api, this.#lastPositions, [batch]));
      binding.input(TOTAL_LENGTH, arrayTensor(api, this.#constants[0], []));
      binding.input(LOGITS_INDEX, arrayTensor(api, this.#constants[1], [batch]));
      if (decoder.positionIds !== null)
        binding.input('position_ids', arrayTensor(api, this.#positions, [batch, 1]));
      binding.output(output, arrayTensor(api, this.logits, [batch, decoder.vocabularySize]));
      this.#cache.bind(binding, 0, batch);
    });
  }

  /**
   * Computes every position of every row. Untouched memory is one page of zeros, which stays in the
   * processor's cache: at batch 32 the loop would look 25 % faster than it is.
   */
  fill(): void {
    for (let position = 0; position < this.#width; position += 1) {
      this.#positions.fill(BigInt(position));
      this.#lastPositions.fill(position);
      for (let row = 0; row < this.#tokens.length; row += 1) {
        this.#tokens[row] = BigInt(32 + ((31 * row + 17 * position) % 224));
      }
      this.run();
    }
  }

  run(): void {
    this.#session.run(this.#binding);
  }

  dispose(): void {
    this.#binding.dispose();
    this.#session.dispose();
    if (!this.logits.some((value) => value !== 0)) throw new Error('The bare loop computed nothing.');
  }
}

function openLoop(directory: string, { batch, threads, context }: CeilingOptions): BareLoop {
  const file = readGraphFile(directory, 'model.onnx');
  const decoder = describeDecoder(file.graph, readModelConfig(textsOf(directory)));
  const { model, graph, logits: output } = patchDecoder(file, decoder);
  const session = loadSession(file, withIntegerProducts(model, graph, LOGITS_INDEX), { threads });
  return new BareLoop(session, decoder, { batch, context, output });
}

/**
 * Measures the bare decode loop in tokens per second: RunWithBinding on the same inputs and graph, without
 * sampling, scheduling or HTTP. Only a better graph can be faster.
 */
export function measureCeiling(directory: string, options: CeilingOptions): number {
  const loop = openLoop(directory, options);
  loop.fill();
  const begun = performance.now();
  let runs = 0;
  let elapsed = 0;
  while (elapsed < options.ms) {
    loop.run();
    runs += 1;
    elapsed = performance.now() - begun;
  }
  loop.dispose();
  return ((options.batch * runs) / elapsed) * 1000;
}
