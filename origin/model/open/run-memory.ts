import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { type OnnxGraph, withBranches } from '../onnx/onnx-graph.ts';
import { maxScored, scoreBytes } from '../runner/device/device-scores.ts';
import { elementBytes } from '../runner/kv-cache.ts';
import { MAX_PREFILL_CHUNKS, MAX_PROMPT_LOGITS } from '../runner/runner-options.ts';

/** Estimates the memory of runs on a card. */

/** A layer's tensors at one time, none above the widest: residual, norm, gate, up, product, result. */
const LIVE_TENSORS = 6;
/** Flash attention divides a row among so many blocks at most, below a card's processors. */
const MAX_SPLITS = 128;
const PROCESSORS = 132;
const HALF = 2;
const SINGLE = 4;

/** Sizes in a graph that its runs need memory for. */
interface RunSizes {
  /** Columns of the widest product, without the logits. */
  readonly widest: number;
  readonly heads: number;
  /** Elements of the largest quantized matrix, which batches above a few rows dequantize as a whole. */
  readonly quantized: number;
}

export function runSizes(graph: OnnxGraph, { vocabularySize, kvHeads }: DecoderInterface): RunSizes {
  const largest = { widest: 0, heads: kvHeads, quantized: 0 };
  for (const { nodes, initializers } of withBranches(graph)) {
    for (const { operator, inputs, integers } of nodes) {
      const [columns, rows] = [integers.get('N') ?? 0, integers.get('K') ?? 0];
      const sizes =
        operator === 'MatMulNBits' ? [columns, rows] : (initializers.get(inputs[1] ?? '')?.dimensions ?? []);
      if (!/^(MatMul|Gemm|FusedMatMul)/.test(operator)) {
        if (operator === 'GroupQueryAttention')
          largest.heads = Math.max(largest.heads, integers.get('num_heads') ?? 0);
        continue;
      }
      largest.quantized = Math.max(largest.quantized, columns * rows);
      largest.widest = Math.max(largest.widest, ...sizes.filter((size) => size < vocabularySize));
    }
  }
  return largest;
}

/** Returns the bytes that the largest run needs beside weights and KV cache. */
export function runBytes(
  decoder: DecoderInterface,
  slots: number,
  prefillChunk: number,
  graph: OnnxGraph,
): number {
  const { vocabularySize, kv } = decoder;
  const headSize = Math.max(0, ...kv.map((tensor) => tensor.headSize));
  const kvHeads = Math.max(0, ...kv.map((tensor) => tensor.heads));
  const { widest, heads, quantized } = runSizes(graph, decoder);
  // A cache of 8 bits is beside activations of 16.
  const activationBytes = Math.max(HALF, elementBytes(decoder));
  const rows = Math.max(slots, MAX_PREFILL_CHUNKS * prefillChunk);
  const wanted = Math.max(slots, MAX_PROMPT_LOGITS, maxScored(vocabularySize));
  // And those of the graphs' rows and of prompts that begin behind a decode run, which stay.
  const kept = slots + MAX_PROMPT_LOGITS;
  const logits = wanted * vocabularySize * (HALF + SINGLE) + kept * vocabularySize * SINGLE;
  const activations = rows * LIVE_TENSORS * widest * activationBytes;
  // Queries, keys and values before and after rotation, and the partial sums of split rows.
  const attention =
    rows * 2 * (heads + 2 * kvHeads) * headSize * activationBytes +
    MAX_SPLITS * PROCESSORS * (headSize + 1) * SINGLE;
  return logits + activations + attention + quantized * HALF + scoreBytes(vocabularySize);
}
