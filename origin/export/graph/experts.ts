import type { ExpertsDesign } from '../families/decoder-design.ts';
import { writeMlp } from './feed-forward.ts';
import { WeightType } from './graph-builder.ts';
import { type GraphContext, nameOf, vectorTensor, writeLinear, writeMatMul } from './linear.ts';

/**
 * Writes a mixture of experts over [batch, sequence, hidden] in plain operators. Each expert is a branch that
 * runs only if a token has chosen it, on the tokens that have. One unused row is added, because a single row
 * may use a kernel that rounds differently. Results are summed in the order of experts, so a row keeps its
 * bits in any batch (docs/decisions/0022-own-exporter.md).
 */
export function writeExperts(
  context: GraphContext,
  design: ExpertsDesign,
  input: string,
  hidden: number,
): string {
  const { graph, type } = context;
  const rows = graph.node('Reshape', [input, graph.integers(-1, hidden)]);
  const shares = writeShares(context, design, rows, hidden);
  const count = design.experts.length;
  const parts = (of: string, axis: number) => {
    const outputs = design.experts.map(() => graph.newName('expert'));
    graph.node('Split', [of], { outputs, integers: { axis, num_outputs: count } });
    return outputs;
  };
  const columns = parts(shares, 1);
  const largest = graph.node('ReduceMax', [shares, graph.integers(0)], { integers: { keepdims: 0 } });
  const isChosen = graph.node('Greater', [largest, graph.scalar(0, type)]);
  const chosen = parts(isChosen, 0);
  // ScatterND adds in single precision only.
  const cast = (name: string, to: 'float32' | 'float16', from: 'float32' | 'float16') =>
    from === to ? name : graph.node('Cast', [name], { integers: { to: WeightType[to] } });
  const nothing = cast(graph.node('Mul', [rows, graph.scalar(0, type)]), 'float32', type);
  const sum = design.experts.reduce((total, expert, index) => {
    const branch = (name: string, write: () => string) =>
      graph.branch(`${name}/${index}`, 'float32', ['rows', hidden], write);
    return graph.node('If', [chosen[index]!], {
      branches: {
        then_branch: branch('run', () => {
          const { tokens, weights } = writeChoice(context, columns[index]!);
          const result = writeMlp(context, expert, graph.node('Gather', [rows, tokens]), hidden);
          const weighted = cast(graph.node('Mul', [result, weights]), 'float32', type);
          const places = graph.node('Unsqueeze', [tokens, graph.integers(1)]);
          return graph.node('ScatterND', [total, places, weighted], { strings: { reduction: 'add' } });
        }),
        else_branch: branch('skip', () => graph.node('Identity', [total])),
      },
    });
  }, nothing);
  const shared = design.shared === null ? null : writeShared(context, design.shared, rows, hidden);
  const routed = cast(sum, type, 'float32');
  const all = shared === null ? routed : graph.node('Add', [routed, shared]);
  return graph.node('Reshape', [all, graph.node('Shape', [input])]);
}

/** An expert's tokens [n + 1] and their weights [n + 1, 1]: the last is the first token with weight 0. */
function writeChoice({ graph, type }: GraphContext, column: string) {
  const flat = graph.node('Reshape', [column, graph.integers(-1)]);
  const chosen = graph.node('Squeeze', [graph.node('NonZero', [flat]), graph.integers(0)]);
  const zero = graph.constant(`${type}/[0]`, type, [1], [0]);
  const tokens = graph.node('Concat', [chosen, graph.integers(0)], { integers: { axis: 0 } });
  const weights = graph.node('Concat', [graph.node('Gather', [flat, chosen]), zero], {
    integers: { axis: 0 },
  });
  return { tokens, weights: graph.node('Unsqueeze', [weights, graph.integers(1)]) };
}

/** The weight of each expert for each row [rows, experts]; 0 for those that it has not chosen. */
function writeShares(context: GraphContext, design: ExpertsDesign, rows: string, hidden: number): string {
  const { graph, type, weights } = context;
  const { router, active, scores, normalized, scale } = design;
  const count = design.experts.length;
  const matrix = weights.open(router.weight, 'matrix', count, hidden);
  const bias = router.bias === null ? null : vectorTensor(context, router.bias, count);
  // Rounded weights would choose other experts.
  const exact = { ...context, precision: type === 'float16' ? 'fp16' : 'fp32' } as const;
  const logits = writeMatMul(exact, rows, nameOf(router.weight), matrix, bias);
  const all =
    scores.kind === 'softmax'
      ? graph.node('Softmax', [logits], { integers: { axis: -1 } })
      : graph.node('Sigmoid', [logits]);
  const isBiased = scores.kind === 'sigmoid' && scores.bias !== null;
  const ranks = isBiased ? graph.node('Add', [all, vectorTensor(context, scores.bias, count)]) : all;
  const outputs = [graph.newName('best'), graph.newName('chosen')];
  graph.node('TopK', [ranks, graph.integers(active)], { outputs, integers: { axis: -1 } });
  const [, chosen = ''] = outputs;
  let shares = graph.node('GatherElements', [all, chosen], { integers: { axis: 1 } });
  if (normalized !== false) {
    const sum = graph.node('ReduceSum', [shares, graph.integers(1)], { integers: { keepdims: 1 } });
    const { epsilon } = normalized;
    const divisor = epsilon === 0 ? sum : graph.node('Add', [sum, graph.scalar(epsilon, type)]);
    shares = graph.node('Div', [shares, divisor]);
  }
  if (scale !== 1) shares = graph.node('Mul', [shares, graph.scalar(scale, type)]);
  const none = graph.node('Mul', [all, graph.scalar(0, type)]);
  return graph.node('ScatterElements', [none, chosen, shares], { integers: { axis: 1 } });
}

function writeShared(
  context: GraphContext,
  { mlp, gate }: NonNullable<ExpertsDesign['shared']>,
  rows: string,
  hidden: number,
): string {
  const result = writeMlp(context, mlp, rows, hidden);
  if (gate === null) return result;
  const exact = { ...context, precision: context.type === 'float16' ? 'fp16' : 'fp32' } as const;
  const open = context.graph.node('Sigmoid', [writeLinear(exact, rows, [gate], hidden, [1])]);
  return context.graph.node('Mul', [result, open]);
}
