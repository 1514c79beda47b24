import type { DecoderInterface } from './decoder-interface.ts';
import type { KvLayout, KvStore } from './kv-cache.ts';
import type { TokenEmbedder } from './token-embedder.ts';

/** What every runner over ONNX Runtime is made from. */
export interface RunnerOptions {
  readonly decoder: DecoderInterface;
  /** The float32 output [logit_rows, vocabulary] of the patched model. */
  readonly logits: string;
  readonly layout: KvLayout;
  readonly prefillChunk: number;
  /** Where keys and values are, laid out as `layout` says. The CPU's memory when absent. */
  readonly cache?: KvStore;
  /** For decoders that read vectors in place of ids; the runner then owns it. */
  readonly embedder?: TokenEmbedder | null;
  /** Makes the memory that logits are written to; ordinary memory unless given. */
  readonly allocateLogits?: AllocateLogits | undefined;
}

/** Zeros, so many. */
export type AllocateLogits = (length: number) => Float32Array<ArrayBuffer>;

export const inOrdinaryMemory: AllocateLogits = (length) => new Float32Array(new ArrayBuffer(4 * length));
