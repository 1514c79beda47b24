import type { ModelConfig } from '../config/model-config.ts';
import { type OnnxGraph, withBranches } from '../onnx/onnx-graph.ts';

/** Index of the rotary cosines among an operator's inputs (in ONNX's RotaryEmbedding, the sines). */
const COSINES: ReadonlyMap<string, number> = new Map([
  ['GroupQueryAttention', 7],
  ['RotaryEmbedding', 2],
]);

/**
 * Returns the most positions of a slot: the configuration's, limited by the rotary tables and by a sliding
 * window that the configuration names but the graph does not apply. Up to its width, a window changes
 * nothing.
 * @throws Error that completes "model.onnx …" if graph and configuration name different windows
 */
export function positionLimit(graph: OnnxGraph, config: ModelConfig): number {
  const attentions = graph.nodes.filter(({ operator }) => operator === 'GroupQueryAttention');
  const limit = Math.min(config.maxPositions, rotaryPositions(graph));
  const { slidingWindow, source } = config;
  if (slidingWindow === null || slidingWindow >= limit) return limit;
  const windows = attentions
    .map(({ integers }) => integers.get('local_window_size') ?? -1)
    .filter((size) => size > 0);
  if (windows.length === 0) return masksWindow(graph, slidingWindow) ? limit : slidingWindow;
  // Some exporters count the token itself, others do not.
  const different = windows.find((size) => Math.abs(size - slidingWindow) > 1);
  if (different === undefined) return limit;
  throw new Error(`has local_window_size ${different} but ${source} says sliding_window ${slidingWindow}`);
}

const COMPARISONS = new Set(['Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual']);

/**
 * Reports whether the graph's own attention mask applies the window. In transformers, query q reads key k
 * only if k > q − window. Optimum exports this as a Sub of the window that a comparison reads.
 */
function masksWindow(graph: OnnxGraph, window: number): boolean {
  const graphs = [...withBranches(graph)];
  const scalarOf = (name = '') =>
    graphs.map(({ scalars }) => scalars.get(name)).find((value) => value !== undefined);
  return graphs.some(({ nodes }) => {
    const starts = new Set(
      nodes
        .filter(({ operator, inputs }) => operator === 'Sub' && scalarOf(inputs[1]) === window)
        .flatMap(({ outputs }) => outputs),
    );
    return nodes.some(
      ({ operator, inputs }) => COMPARISONS.has(operator) && inputs.some((name) => starts.has(name)),
    );
  });
}

/** Returns the rows of the shortest rotary table; later positions would read outside of it. */
function rotaryPositions(graph: OnnxGraph): number {
  const rows = graph.nodes.flatMap(({ operator, inputs }) => {
    const table = inputs[COSINES.get(operator) ?? -1] ?? '';
    return table === '' ? [] : tableRows(table, graph);
  });
  return Math.min(Infinity, ...rows);
}

/**
 * Long RoPE has a second table for long inputs, which an If selects by the longest row of the batch. Beyond
 * the shorter table, a row's result would depend on the other rows.
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
