import { EMPTY, type Expression, type GraphEdge, NOTHING, repeat, sequence } from '../rules/expression.ts';
import { schemaError } from '../rules/grammar-error.ts';
import { anyOrder } from './any-order.ts';
import { countRange } from './assertions.ts';
import {
  type Conjunction,
  conjunctionOf,
  inScopeOf,
  type KeywordNode,
  type KeywordNodes,
} from './conjunction.ts';
import type { SchemaContext } from './schema-context.ts';
import type { SchemaDocument, SchemaNode } from './schema-document.ts';

const MAX_COUNTED = 2_000;

interface Range {
  readonly min: number;
  readonly max: number;
}

/**
 * Arrays: items of `prefixItems` (or `items` as an array) first, then items of `items` (`additionalItems`).
 */
export function arrayExpression(nodes: KeywordNodes, context: SchemaContext): Expression {
  const range = countRange(nodes, 'minItems', 'maxItems');
  if (range.min > range.max) return NOTHING;
  const isDistinct = range.max > 1 && nodes.some(({ schema }) => schema.uniqueItems === true);
  if (!isDistinct) return anyArray(nodes, range, context);
  return listedOnce(nodes, range, context) ?? context.withDistinct(anyArray(nodes, range, context));
}

function anyArray(nodes: KeywordNodes, { min, max }: Range, context: SchemaContext): Expression {
  const counting = nodes.filter(({ schema }) => schema.contains !== undefined);
  if (counting.length > 0) return containing(nodes, counting, { min, max }, context);
  const prefix = Math.min(max, Math.max(0, ...nodes.map(prefixLength)));
  const { json } = context;
  const edges: GraphEdge[] = [];
  const final = prefix + 1;
  for (let i = 0; i <= prefix; i++) {
    if (i < prefix) {
      const item = context.ruleFor(itemSchemas(nodes, i, context.document));
      edges.push({ from: i, to: i + 1, label: i === 0 ? item : sequence(json.comma, item) });
      if (i >= min) edges.push({ from: i, to: final, label: EMPTY });
    } else {
      const rest = context.ruleFor(itemSchemas(nodes, prefix, context.document));
      edges.push({ from: i, to: final, label: restOf(rest, prefix, min, max, json.comma) });
    }
  }
  return json.arrayOf({ kind: 'graph', states: final + 1, edges, final });
}

/**
 * Arrays of which a number of items satisfies each `contains`: an automaton over (items written, items
 * counted for each). An item that need not count may satisfy `contains` as well, unless there is a maximum.
 */
function containing(
  nodes: KeywordNodes,
  counting: KeywordNodes,
  { min, max }: Range,
  context: SchemaContext,
): Expression {
  const { json, document } = context;
  const positions = Number.isFinite(max) ? max : Math.max(min, 1, ...nodes.map(prefixLength));
  let tallies = 1;
  const counters = counting.map((node) => {
    const { minContains: least = 1, maxContains: most = Number.POSITIVE_INFINITY } = node.schema;
    const counts = Number.isFinite(most) ? most : least;
    const unit = tallies;
    tallies *= counts + 1;
    const countIn = (tally: number): number => Math.floor(tally / unit) % (counts + 1);
    return { matching: document.child(node, 'contains'), least, most, counts, unit, countIn };
  });
  if ((positions + 1) * tallies * 2 ** (counters.length - 1) > MAX_COUNTED)
    throw schemaError(
      `${counting[0]!.path}/contains`,
      `positions times counts must be at most ${MAX_COUNTED}`,
    );
  const final = (positions + 1) * tallies;
  const edges: GraphEdge[] = [];
  for (let state = 0; state < final; state++) {
    const position = Math.floor(state / tallies);
    const tally = state % tallies;
    const isComplete = counters.every(({ least, countIn }) => countIn(tally) >= least);
    if (position >= min && isComplete) edges.push({ from: state, to: final, label: EMPTY });
    const isOpen = position === positions && !Number.isFinite(max);
    const next = state + (isOpen ? 0 : tallies);
    if (next >= final) continue;
    let choices: { to: number; item: Conjunction }[] = [
      { to: next, item: itemSchemas(nodes, position, document) },
    ];
    for (const { matching, most, counts, unit, countIn } of counters) {
      const nonMatching: Conjunction = Number.isFinite(most) ? [{ node: matching, part: 'not' }] : [];
      choices = choices.flatMap(({ to, item }) => [
        { to, item: [...item, ...nonMatching] },
        ...(countIn(tally) === counts
          ? []
          : [{ to: to + unit, item: [...item, ...conjunctionOf(matching)] }]),
      ]);
    }
    for (const { to, item } of choices) {
      const value = context.ruleFor(item);
      edges.push({ from: state, to, label: position === 0 ? value : sequence(json.comma, value) });
    }
  }
  return json.arrayOf({ kind: 'graph', states: final + 1, edges, final });
}

/** The schemas that apply to the item at a position. */
export function itemSchemas(nodes: KeywordNodes, index: number, document: SchemaDocument): Conjunction {
  return [
    ...conjunctionOf(...nodes.flatMap((node) => itemSchema(node, index, document) ?? [])),
    ...nodes.flatMap((node) => unevaluatedItem(node, nodes, index, document)),
  ];
}

/** Items that no `prefixItems`, `items` or `contains` beside `unevaluatedItems` evaluates satisfy it. */
function unevaluatedItem(
  node: KeywordNode,
  nodes: KeywordNodes,
  index: number,
  document: SchemaDocument,
): Conjunction {
  const { unevaluatedItems } = node.schema;
  if (unevaluatedItems === undefined) return [];
  const evaluating = inScopeOf(node, nodes);
  const isEvaluated = evaluating.some(
    (candidate) =>
      itemSchema(candidate, index, document) !== null ||
      (candidate.schema.unevaluatedItems !== undefined && candidate.path !== node.path),
  );
  if (isEvaluated) return [];
  const counting = evaluating.filter(({ schema }) => schema.contains !== undefined);
  if (counting.length === 0) return conjunctionOf(document.child(node, 'unevaluatedItems'));
  const anyOf = [unevaluatedItems, ...counting.map(({ schema }) => schema.contains)];
  const name = `unevaluatedItems or ${counting.map(({ path }) => path).join(' or ')}`;
  return conjunctionOf({ path: `${node.path} ${name}`, schema: { anyOf } });
}

function itemSchema(node: KeywordNode, index: number, document: SchemaDocument): SchemaNode | null {
  const { schema } = node;
  const listed = schema.prefixItems ? 'prefixItems' : Array.isArray(schema.items) ? 'items' : null;
  if (listed !== null && index < prefixLength(node)) return document.child(node, listed, index);
  const rest = listed === 'items' ? 'additionalItems' : 'items';
  return schema[rest] === undefined || Array.isArray(schema[rest]) ? null : document.child(node, rest);
}

function prefixLength({ schema }: KeywordNode): number {
  if (schema.prefixItems) return schema.prefixItems.length;
  return Array.isArray(schema.items) ? schema.items.length : 0;
}

/** Items from position `from`. A comma precedes each item except the first of the array. */
function restOf(item: Expression, from: number, min: number, max: number, comma: Expression): Expression {
  if (max <= from) return EMPTY;
  const another = sequence(comma, item);
  if (from > 0) return repeat(another, Math.max(0, min - from), max - from);
  const some = sequence(item, repeat(another, Math.max(0, min - 1), max - 1));
  return repeat(some, Math.min(1, min), 1);
}

/** Arrays of listed values, none of them twice. Null if the items are not listed. */
function listedOnce(nodes: KeywordNodes, range: Range, context: SchemaContext): Expression | null {
  if (nodes.some((node) => prefixLength(node) > 0 || node.schema.contains !== undefined)) return null;
  const values = context.listedValues(itemSchemas(nodes, 0, context.document));
  if (values === null) return null;
  const members = values.map((value) => ({
    rule: context.addRule(context.json.literal(value)),
    required: false,
  }));
  return context.json.arrayOf(anyOrder({ members, additional: null, ...range }, context));
}
