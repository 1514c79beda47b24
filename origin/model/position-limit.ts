import type { ModelConfig } from './model-config.ts';
import type { GraphNode, OnnxGraph } from './onnx-graph.ts';

/** Position of the rotary cosines among GroupQueryAttention's inputs. */
const COS_CACHE_INPUT = 7;

/**
 * Positions a slot may have: what the configuration says, as far as the rotary tables go, and not past a sliding window
 * that the configuration names but the graph does not apply (up to its width a window changes nothing). Throws an Error
 * that completes "model.onnx …" when the graph's window is another one.
 */
export function positionLimit(graph: OnnxGraph, config: ModelConfig): number {
  const attentions = graph.nodes.filter(({ operator }) => operator === 'GroupQueryAttention');
  const limit = Math.min(config.maxPositions, rotaryPositions(attentions, graph));
  const { slidingWindow, source } = config;
  if (slidingWindow === null || slidingWindow >= limit) return limit;
  const windows = attentions
    .map(({ integers }) => integers.get('local_window_size') ?? -1)
    .filter((size) => size > 0);
  if (windows.length === 0) return slidingWindow;
  // Exporters count the token itself in or not.
  const other = windows.find((size) => Math.abs(size - slidingWindow) > 1);
  if (other === undefined) return limit;
  throw new Error(`has local_window_size ${other} but ${source} says sliding_window ${slidingWindow}`);
}

/** Rows of the shortest rotary table: positions past it would read outside. */
function rotaryPositions(attentions: readonly GraphNode[], graph: OnnxGraph): number {
  const rows = attentions.map(
    ({ inputs }) => graph.initializers.get(inputs[COS_CACHE_INPUT] ?? '')?.dimensions[0] ?? Infinity,
  );
  return Math.min(Infinity, ...rows);
}
