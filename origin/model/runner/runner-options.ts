import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import type { LogitRows } from '../model-runner.ts';
import type { BoundTensor } from '../ort/bound-tensors.ts';
import type { KvLayout, KvStore } from './kv-cache.ts';
import type { StateMemory } from './state-cache.ts';
import type { TokenEmbedder } from './token-embedder.ts';

/**
 * Most chunks of one prefill run. Each operator then starts half as often: prompts of 720 tokens take 13 %
 * less time on the CPU with the built-in model. More chunks gain little beyond that, and other requests wait
 * longer for the end of the run.
 */
export const MAX_PREFILL_CHUNKS = 2;

/** Scores tokens of prompts on a device. */
export interface PromptScores {
  /** Most rows of logits at a time. */
  readonly maxRows: number;
  /** Where a run leaves its logits, which `score` reads. */
  logits(rows: number): BoundTensor;
  /** @param next by row: the token to score */
  score(next: Int32Array): LogitRows;
}

/** Options of every runner over ONNX Runtime. */
export interface RunnerOptions {
  readonly decoder: DecoderInterface;
  /** The float32 output [logit_rows, vocabulary] of the patched model. */
  readonly logits: string;
  readonly layout: KvLayout;
  readonly prefillChunk: number;
  /** The KV cache, with the layout of `layout`; absent = in CPU memory. */
  readonly cache?: KvStore;
  /** Memory of the states, if the decoder has any; absent = CPU memory. */
  readonly states?: StateMemory;
  /** For decoders that read vectors instead of ids. The runner owns it. */
  readonly embedder?: TokenEmbedder | null;
  /** Scores prompts where their logits are; null or absent = the device has nothing for it. */
  readonly scores?: PromptScores | null;
  /** Allocates the memory of the logits; default: ordinary memory. */
  readonly allocateLogits?: AllocateLogits | undefined;
}

/**
 * Most rows of logits of a prompt's run on a device. 512 rows of 128,256 tokens would be 262 MB outside of
 * the runner's memory. By estimate, their logprobs would delay running streams by 100 ms, and 32 rows by 6.
 */
export const MAX_PROMPT_LOGITS = 32;

/**
 * Rows of logits that a runner keeps memory for: a row per slot, or as many as prompts usually ask for. Runs
 * that ask for more get memory of their own.
 */
export const keptLogitRows = ({ slots }: KvLayout, prefillChunk: number): number =>
  Math.max(slots, Math.min(prefillChunk, MAX_PROMPT_LOGITS));

/** Returns an array of `length` zeros. */
export type AllocateLogits = (length: number) => Float32Array<ArrayBuffer>;

export const inOrdinaryMemory: AllocateLogits = (length) => new Float32Array(new ArrayBuffer(4 * length));
