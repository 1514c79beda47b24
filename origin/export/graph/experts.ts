import { ElementType } from '@continuo/origin/model/onnx/onnx-graph.ts';
import type { ExpertsDesign, RouterDesign, SparseMixer } from '../design/feed-forward-design.ts';
import { writeMlp } from './feed-forward.ts';
import { EXACT, type FloatType, requireHalfOrSingle } from './float-type.ts';
import { type GraphContext, nameOf, vectorTensor, writeLinear, writeMatMul } from './linear.ts';
import { writeOptionalNorm } from './norms.ts';

/**
 * Writes a mixture of experts over [batch, sequence, hidden] in plain operators. Each expert is a branch that
 * runs only if a token has chosen it, on the tokens that have. One unused row is added, because a single row
 * may use a kernel that rounds differently. Results are summed in the order of experts, so a row keeps its
 * bits in any batch (docs/decisions/0022-own-exporter.md).
 * @param routed what the router reads
 */
export function writeExperts(
  context: GraphContext,
  design: ExpertsDesign,
  input: string,
  hidden: number,
  routed = input,
): string {
  const { graph, type } = context;
  requireHalfOrSingle(type, 'experts');
  const toRows = (name: string) => graph.node('Reshape', [name, graph.integers(-1, hidden)]);
  const rows = toRows(input);
  const shares = writeShares(context, design, routed === input ? rows : toRows(routed), hidden);
  const count = design.experts.length;
  const parts = (of: string, axis: number) => {
    const outputs = design.experts.map(() => graph.newName('expert'));
    graph.node('Split', [of], { outputs, integers: { axis, num_outputs: count } });
    return outputs;
  };
  const columns = parts(shares, 1);
  // Factors of experts may be negative.
  const used = design.router.expertScales === null ? shares : graph.node('Abs', [shares]);
  const largest = graph.node('ReduceMax', [used, graph.integers(0)], { integers: { keepdims: 0 } });
  const isChosen = graph.node('Greater', [largest, graph.scalar(0, type)]);
  const chosen = parts(isChosen, 0);
  // ScatterND adds in single precision only.
  const cast = (name: string, to: FloatType, from: FloatType) =>
    from === to ? name : graph.node('Cast', [name], { integers: { to: ElementType[to] } });
  const nothing = cast(graph.node('Mul', [rows, graph.scalar(0, type)]), 'float32', type);
  // Products in branches are not replaced (integer-products.ts), and larger blocks lose more.
  const { precision } = context;
  const inBranch: GraphContext = { ...context, precision: precision === 'int8a8' ? 'int8' : precision };
  const sum = design.experts.reduce((total, expert, index) => {
    const branch = (name: string, write: () => string) =>
      graph.branch(`${name}/${index}`, 'float32', ['rows', hidden], write);
    return graph.node('If', [chosen[index]!], {
      branches: {
        then_branch: branch('run', () => {
          const { tokens, weights } = writeChoice(context, columns[index]!);
          const chosenRows = graph.node('Gather', [rows, tokens]);
          const scaled = (name: string) => graph.node('Mul', [name, weights]);
          const result = design.router.scalesInput
            ? writeMlp(inBranch, expert, scaled(chosenRows), hidden)
            : scaled(writeMlp(inBranch, expert, chosenRows, hidden));
          const weighted = cast(result, 'float32', type);
          const places = graph.node('Unsqueeze', [tokens, graph.integers(1)]);
          return graph.node('ScatterND', [total, places, weighted], { strings: { reduction: 'add' } });
        }),
        else_branch: branch('skip', () => graph.node('Identity', [total])),
      },
    });
  }, nothing);
  const shared = design.shared === null ? null : writeShared(context, design.shared, rows, hidden);
  const mixed = cast(sum, type, 'float32');
  const all = shared === null ? mixed : graph.node('Add', [mixed, shared]);
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
function writeShares(
  context: GraphContext,
  { router, experts }: ExpertsDesign,
  rows: string,
  hidden: number,
): string {
  const { graph, type, weights } = context;
  const { projection, active, normalized, scale } = router;
  const count = experts.length;
  const matrix = weights.open(projection.weight, 'matrix', count, hidden);
  const bias = projection.bias === null ? null : vectorTensor(context, projection.bias, count);
  // Rounded weights would choose other experts.
  const exact = { ...context, precision: EXACT[type] };
  const read = routerInput(context, router, rows, hidden);
  const logits = writeMatMul(exact, read, nameOf(projection.weight), matrix, bias);
  if (typeof router.scores === 'object') return writeMixedShares(context, router.scores, logits);
  const scores =
    router.scores === 'sigmoid'
      ? graph.node('Sigmoid', [logits])
      : graph.node('Softmax', [logits], { integers: { axis: -1 } });
  const { indices } = writeBest(context, writeChoiceScores(context, router, scores, count), active);
  let shares = graph.node('GatherElements', [scores, indices], { integers: { axis: 1 } });
  if (normalized) {
    shares = graph.node('Div', [shares, writeDivisor(context, router, shares)]);
  }
  if (scale !== 1) shares = graph.node('Mul', [shares, graph.scalar(scale, type)]);
  const none = graph.node('Mul', [scores, graph.scalar(0, type)]);
  const scattered = graph.node('ScatterElements', [none, indices, shares], { integers: { axis: 1 } });
  if (router.expertScales === null) return scattered;
  return graph.node('Mul', [scattered, vectorTensor(context, router.expertScales, count)]);
}

function routerInput(context: GraphContext, { input }: RouterDesign, rows: string, hidden: number): string {
  if (input === null) return rows;
  const normed = writeOptionalNorm(context, rows, input.norm, hidden);
  return context.graph.times(normed, input.factor, context.type);
}

function writeMixedShares({ graph, type }: GraphContext, { reach }: SparseMixer, logits: string): string {
  const none = graph.node('Mul', [logits, graph.scalar(0, type)]);
  const sizes = graph.node('Abs', [logits]);
  const choose = (left: string) => {
    const best = graph.node('ReduceMax', [left, graph.integers(-1)], { integers: { keepdims: 1 } });
    const distances = graph.node('Div', [
      graph.node('Sub', [best, logits]),
      graph.node('Max', [sizes, best]),
    ]);
    const isFar = graph.node('Greater', [distances, graph.scalar(reach, type)]);
    const near = graph.node('Where', [isFar, graph.scalar(-Infinity, type), left]);
    const probabilities = graph.node('Softmax', [near], { integers: { axis: -1 } });
    const chosen = graph.node('ArgMax', [left], { integers: { axis: -1, keepdims: 1 } });
    const share = graph.node('GatherElements', [probabilities, chosen], { integers: { axis: 1 } });
    return { chosen, share };
  };
  const scatter = (into: string, { chosen, share }: ReturnType<typeof choose>) =>
    graph.node('ScatterElements', [into, chosen, share], { integers: { axis: 1 } });
  const first = choose(logits);
  const zero = graph.node('Mul', [first.share, graph.scalar(0, type)]);
  const lowest = graph.node('Sub', [zero, graph.scalar(Infinity, type)]);
  const second = choose(scatter(logits, { ...first, share: lowest }));
  return scatter(scatter(none, first), second);
}

function writeDivisor({ graph, type }: GraphContext, design: RouterDesign, shares: string): string {
  const { smallestSum, epsilon } = design;
  const sum = graph.node('ReduceSum', [shares, graph.integers(1)], { integers: { keepdims: 1 } });
  const least = smallestSum === 0 ? sum : graph.node('Max', [sum, graph.scalar(smallestSum, type)]);
  return epsilon === 0 ? least : graph.node('Add', [least, graph.scalar(epsilon, type)]);
}

/** The scores by which experts are chosen: −∞ in groups that are not. */
function writeChoiceScores(
  context: GraphContext,
  { correction, groups }: RouterDesign,
  scores: string,
  count: number,
): string {
  const { graph, type } = context;
  const corrected =
    correction === null ? scores : graph.node('Add', [scores, vectorTensor(context, correction, count)]);
  if (groups === null || groups.chosen === groups.count) return corrected;
  const grouped = graph.node('Reshape', [corrected, graph.integers(-1, groups.count, count / groups.count)]);
  const { values } = writeBest(context, grouped, groups.best);
  const sums = graph.node('ReduceSum', [values, graph.integers(-1)], { integers: { keepdims: 0 } });
  const { indices } = writeBest(context, sums, groups.chosen);
  const zeros = graph.node('Mul', [sums, graph.scalar(0, type)]);
  const ones = graph.node('Add', [
    graph.node('GatherElements', [zeros, indices], { integers: { axis: 1 } }),
    graph.scalar(1, type),
  ]);
  const marked = graph.node('ScatterElements', [zeros, indices, ones], { integers: { axis: 1 } });
  const isChosen = graph.node('Greater', [
    graph.node('Unsqueeze', [marked, graph.integers(2)]),
    graph.scalar(0, type),
  ]);
  const allowed = graph.node('Where', [isChosen, grouped, graph.scalar(-Infinity, type)]);
  return graph.node('Reshape', [allowed, graph.integers(-1, count)]);
}

/** The largest values of the last dimension. */
function writeBest({ graph }: GraphContext, of: string, count: number) {
  const outputs = [graph.newName('best'), graph.newName('chosen')];
  graph.node('TopK', [of, graph.integers(count)], { outputs, integers: { axis: -1 } });
  const [values = '', indices = ''] = outputs;
  return { values, indices };
}

function writeShared(
  context: GraphContext,
  { mlp, gate }: NonNullable<ExpertsDesign['shared']>,
  rows: string,
  hidden: number,
): string {
  const result = writeMlp(context, mlp, rows, hidden);
  if (gate === null) return result;
  const exact = { ...context, precision: EXACT[context.type] };
  const open = context.graph.node('Sigmoid', [writeLinear(exact, rows, [gate], hidden, [1])]);
  return context.graph.node('Mul', [result, open]);
}
