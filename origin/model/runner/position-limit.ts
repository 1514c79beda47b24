import type { ModelConfig } from '../config/model-config.ts';
import type { OnnxGraph } from '../onnx/onnx-graph.ts';

/** Position of the rotary cosines among an operator's inputs (in ONNX's own RotaryEmbedding the sines, as many). */
const COSINES: ReadonlyMap<string, number> = new Map([
  ['GroupQueryAttention', 7],
  ['RotaryEmbedding', 2],
]);

/**
 * Positions a slot may have: what the configuration says, as far as the rotary tables go, and not past a sliding window
 * that the configuration names but the graph does not apply (up to its width a window changes nothing). Throws an Error
 * that completes "model.onnx …" when the graph's window is another one.
 */
export function positionLimit(graph: OnnxGraph, config: ModelConfig): number {
  const attentions = graph.nodes.filter(({ operator }) => operator === 'GroupQueryAttention');
  const limit = Math.min(config.maxPositions, rotaryPositions(graph));
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
function rotaryPositions(graph: OnnxGraph): number {
  const rows = graph.nodes.flatMap(({ operator, inputs }) => {
    const table = inputs[COSINES.get(operator) ?? -1] ?? '';
    return table === '' ? [] : tableRows(table, graph);
  });
  return Math.min(Infinity, ...rows);
}

/**
 * Long RoPE has a table for long inputs, too, which an If takes by the length of the longest row: past the shorter one a
 * row would look at keys turned by the other, and what a row is given would depend on its company.
 */
function tableRows(table: string, { nodes, initializers }: OnnxGraph): number[] {
  const chosen = nodes.find(({ branches, outputs }) => branches.length > 0 && outputs.includes(table));
  if (chosen === undefined) return [initializers.get(table)?.dimensions[0] ?? Infinity];
  const at = chosen.outputs.indexOf(table);
  return chosen.branches.map(({ outputs }) => {
    const rows = outputs[at]?.dimensions[0];
    if (typeof rows !== 'number') throw new Error(`does not say how many positions its ${table} is for`);
    return rows;
  });
}
