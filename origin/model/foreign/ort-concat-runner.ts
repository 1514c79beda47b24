import { LOGITS_INDEX } from '../config/decoder-names.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import {
  type DecodeBatch,
  imagesWithin,
  type KvBytes,
  type ModelRunner,
  type ModelShape,
  type PrefillChunk,
} from '../model-runner.ts';
import { ElementType } from '../onnx/onnx-graph.ts';
import {
  arrayTensor,
  type BoundTensor,
  type Elements,
  type RunBinding,
  type RunSession,
} from '../ort/bound-tensors.ts';
import { RunGuard } from '../ort/run-guard.ts';
import { allocateInt64, PrefillInputs } from '../runner/batch-inputs.ts';
import { inOrdinaryMemory, type RunnerOptions } from '../runner/runner-options.ts';
import type { TokenEmbedder } from '../runner/token-embedder.ts';
import { ConcatenatedCache } from './concatenated-cache.ts';

/** A run over consecutive tokens of one sequence. Its logits start at row `firstRow`. */
interface Piece extends PrefillChunk {
  readonly firstRow: number;
}

/**
 * A ModelRunner for graphs without GroupQueryAttention, whose present is a new tensor of past and new
 * positions. Every row is a separate run, so its bits cannot depend on other rows. Owns the session.
 */
export class OrtConcatRunner implements ModelRunner {
  readonly shape: ModelShape;
  /**
   * Whether a run may have several tokens after a past. Some exports were traced with one token and have no
   * causal mask for more; their prompts continue token by token.
   */
  severalAfterPast = true;
  readonly #session: RunSession;
  readonly #decoder: DecoderInterface;
  readonly #logitsName: string;
  readonly #cache: ConcatenatedCache;
  readonly #inputs: PrefillInputs;
  /** Ones, because every row is a run of its own without padding. */
  readonly #mask: BigInt64Array<ArrayBuffer>;
  readonly #embedder: TokenEmbedder | null;
  readonly #useCacheBranch = new Uint8Array(new ArrayBuffer(1));
  readonly #logits: Float32Array<ArrayBuffer>;
  readonly #guard = new RunGuard(() => this.#release());

  constructor(
    session: RunSession,
    {
      decoder,
      logits,
      layout,
      prefillChunk,
      embedder = null,
      allocateLogits = inOrdinaryMemory,
    }: RunnerOptions,
  ) {
    const { slots, contextLength } = layout;
    const { vocabularySize } = decoder;
    this.shape = { vocabularySize, contextLength, slots, prefillChunk, minRows: 1 };
    this.#session = session;
    this.#decoder = decoder;
    this.#logitsName = logits;
    this.#cache = new ConcatenatedCache(session.api, decoder, layout);
    this.#inputs = new PrefillInputs(1, prefillChunk);
    this.#mask = allocateInt64(contextLength).fill(1n);
    this.#embedder = embedder;
    this.#logits = allocateLogits(Math.max(slots, prefillChunk) * vocabularySize);
  }

  /** Runs on the calling thread, one row at a time. */
  decode({ firstSlot, rows, tokens, positions }: DecodeBatch): Float32Array {
    this.#guard.requireIdle();
    const logitsAt = Int32Array.of(0);
    for (let row = 0; row < rows; row++) {
      const token = tokens.subarray(row, row + 1);
      const piece = { slot: firstSlot + row, start: positions[row]!, tokens: token, logitsAt, firstRow: row };
      using binding = this.#bind(piece);
      this.#session.run(binding);
      this.#cache.commit(piece.slot, 1);
    }
    return this.#logits.subarray(0, rows * this.shape.vocabularySize);
  }

  /** Runs on a pool thread. An abort stops it within one operator. */
  prefill(chunk: PrefillChunk, signal: AbortSignal): Promise<Float32Array> {
    return this.#guard.run(async () => {
      for (const piece of this.#piecesOf(chunk)) await this.#runPiece(piece, signal);
      return this.#logits.subarray(0, chunk.logitsAt.length * this.shape.vocabularySize);
    });
  }

  get kvBytes(): KvBytes {
    return this.#cache;
  }

  copy(from: number, to: number, end: number): void {
    this.#guard.requireIdle();
    if (from !== to) this.#cache.copy(from, to, end);
  }

  /** Releases native memory now, or after the current prefill. */
  dispose(): void {
    this.#guard.dispose();
  }

  #release(): void {
    this.#embedder?.dispose();
    this.#session.dispose();
  }

  #piecesOf(chunk: PrefillChunk): Piece[] {
    if (chunk.start === 0 || this.severalAfterPast) return [{ ...chunk, firstRow: 0 }];
    return Array.from(chunk.tokens, (token, index) => {
      const row = chunk.logitsAt.indexOf(index);
      return {
        slot: chunk.slot,
        start: chunk.start + index,
        tokens: Int32Array.of(token),
        logitsAt: row < 0 ? new Int32Array() : Int32Array.of(0),
        firstRow: Math.max(0, row),
        images: imagesWithin(chunk.images ?? [], index, index + 1),
      };
    });
  }

  async #runPiece(piece: Piece, signal: AbortSignal): Promise<void> {
    using binding = this.#bind(piece);
    await this.#session.runAsync(binding, signal);
    this.#cache.commit(piece.slot, piece.tokens.length);
  }

  #bind(piece: Piece): RunBinding {
    const { slot, start, tokens, logitsAt } = piece;
    const { tokenInput, attentionMask, positionIds, useCacheBranch } = this.#decoder;
    const inputs = this.#inputs;
    inputs.fill([piece]);
    this.#embedder?.embed(tokens, tokens.length, piece.images);
    const dimensions = [1, tokens.length];
    return this.#session.bound((binding) => {
      this.#cache.bind(binding, slot, start, tokens.length);
      const ids = this.#tensor(inputs.tokens, dimensions);
      binding.input(tokenInput, this.#embedder?.vectors(dimensions) ?? ids);
      binding.input(attentionMask, this.#tensor(this.#mask, [1, start + tokens.length]));
      if (positionIds !== null) binding.input(positionIds, this.#tensor(inputs.positions, dimensions));
      if (useCacheBranch !== null) binding.input(useCacheBranch, this.#branch(start > 0));
      binding.input(LOGITS_INDEX, this.#tensor(inputs.logitsIndex, [logitsAt.length]));
      binding.output(this.#logitsName, this.#logitsTensor(piece));
    });
  }

  #branch(readsPast: boolean): BoundTensor {
    this.#useCacheBranch[0] = readsPast ? 1 : 0;
    const owner = this.#useCacheBranch;
    const address = this.#session.api.addressOf(owner);
    return { owner, address, elementType: ElementType.bool, elementBytes: 1, dimensions: [1] };
  }

  #tensor(array: Elements, dimensions: readonly number[]): BoundTensor {
    return arrayTensor(this.#session.api, array, dimensions);
  }

  #logitsTensor({ firstRow, logitsAt }: Piece): BoundTensor {
    const { vocabularySize } = this.shape;
    const rows = this.#logits.subarray(firstRow * vocabularySize);
    return this.#tensor(rows, [logitsAt.length, vocabularySize]);
  }
}
