import { EMPTY, type Expression, type GraphEdge, NOTHING, repeat, sequence } from '../expression.ts';
import { schemaError } from '../grammar-error.ts';
import { countRange } from './assertions.ts';
import { type Conjunction, conjunctionOf, type KeywordNode, type KeywordNodes } from './conjunction.ts';
import type { SchemaContext } from './schema-context.ts';
import type { SchemaDocument, SchemaNode } from './schema-document.ts';

/** Arrays: items of `prefixItems` (or `items` as an array) first, then items of `items` (`additionalItems`). */
export function arrayExpression(nodes: KeywordNodes, context: SchemaContext): Expression {
  const { min, max } = countRange(nodes, 'minItems', 'maxItems');
  refuseUnique(nodes, max);
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

/** The schemas that apply to the item at a position. */
export function itemSchemas(nodes: KeywordNodes, index: number, document: SchemaDocument): Conjunction {
  return conjunctionOf(...nodes.flatMap((node) => itemSchema(node, index, document) ?? []));
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
  if (max <= from) return min <= from ? EMPTY : NOTHING;
  const another = sequence(comma, item);
  if (from > 0) return repeat(another, Math.max(0, min - from), max - from);
  const some = sequence(item, repeat(another, Math.max(0, min - 1), max - 1));
  return repeat(some, Math.min(1, min), 1);
}

function refuseUnique(nodes: KeywordNodes, max: number): void {
  const unique = nodes.find(({ schema }) => schema.uniqueItems === true);
  if (unique && max > 1)
    throw schemaError(
      `${unique.path}/uniqueItems`,
      'cannot be enforced for more than one item; remove it or set maxItems to 1',
    );
}
