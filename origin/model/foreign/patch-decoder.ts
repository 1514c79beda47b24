import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { type OnnxGraph, readGraph } from '../onnx/onnx-graph.ts';
import { graphFields, withGraph } from '../onnx/onnx-patch.ts';
import type { GraphFile } from '../ort/graph-file.ts';
import { feedLengths } from './attention-lengths.ts';
import { insertLogitsIndex, keepAllLogits } from './logits-index.ts';
import { disableWindowedCache } from './windowed-cache.ts';

interface PatchedDecoder {
  readonly model: Uint8Array;
  readonly graph: OnnxGraph;
  /** The float32 output [logit_rows, vocabulary]. */
  readonly logits: string;
}

/**
 * Returns a decoder's graph with the inputs that the runners bind.
 * @throws Error that completes "model.onnx …"
 */
export function patchDecoder(
  { model, graph }: Pick<GraphFile, 'model' | 'graph'>,
  decoder: DecoderInterface,
): PatchedDecoder {
  if (decoder.readsRunInputs) return { model, graph, logits: decoder.logits };
  const fields = keepAllLogits(disableWindowedCache(graphFields(model)));
  const fed = decoder.cache === 'in-place' ? feedLengths(fields, decoder.attentionMask) : fields;
  const patched = insertLogitsIndex(fed, decoder.logits, logitsSelection(graph, decoder));
  const changed = withGraph(model, patched.fields);
  return { model: changed, graph: readGraph(changed), logits: patched.logits };
}

/** Logits that come from a branch have no projection to select before. */
function logitsSelection({ nodes }: OnnxGraph, { logits, couplesRows }: DecoderInterface) {
  const source = nodes.find(({ outputs }) => outputs.includes(logits));
  const isBranch = (source?.branches.length ?? 0) > 0;
  return couplesRows || isBranch ? 'after-projection' : 'before-projection';
}
