import { isEmptyLanguage } from '../automaton/dfa.ts';
import { compareNumbers } from '../rules/decimal.ts';
import { itemSchemas } from './array-schema.ts';
import { countRange, enumeratedValues, numberAssertions, typesOf } from './assertions.ts';
import { type Conjunction, conjunctionKey, type KeywordNodes, simplified } from './conjunction.ts';
import { branchesOf, type Expanded, expand, isScope } from './expansion.ts';
import { propertySchemas, requiredProperties } from './object-properties.ts';
import type { SchemaContext, ValidationContext } from './schema-context.ts';
import { satisfies } from './schema-validator.ts';
import { stringLanguage } from './string-schema.ts';

/** Maximum nesting of members and items that are compared. */
const MAX_DEPTH = 4;

/**
 * Whether certainly no value satisfies both conjunctions. Every valid value counts, so keywords are read as
 * JSON Schema defines them, and formats as widely as any validator.
 */
export function areDisjoint(a: Conjunction, b: Conjunction, context: SchemaContext, depth = 0): boolean {
  const keys = [a, b].map((conjunction) => conjunctionKey(simplified(conjunction))).sort();
  const key = `${depth}\n${keys[0]}\n\n${keys[1]}`;
  const cached = context.disjoint.get(key);
  if (cached !== undefined) return cached;
  context.budget.spend(100);
  const disjoint = isDisjoint(a, b, context, depth);
  context.disjoint.set(key, disjoint);
  return disjoint;
}

function isDisjoint(a: Conjunction, b: Conjunction, context: SchemaContext, depth: number): boolean {
  const left = expand(a, context.document);
  const right = expand(b, context.document);
  if (left.impossible || right.impossible) return true;
  // A `not` is left out: without it, each side counts more values.
  const choice = left.alternatives.find(({ part }) => part !== 'not');
  const isSplit = [...left.alternatives, ...right.alternatives].some(({ part }) => part !== 'not');
  // Usually the keywords beside the alternatives decide.
  if (isSplit && areDisjoint(keywordsOf(left), keywordsOf(right), context, depth)) return true;
  if (choice) {
    const branches = branchesOf(left, choice, context.document);
    return branches.every((branch) => areDisjoint(branch, b, context, depth));
  }
  if (isSplit) return areDisjoint(b, a, context, depth);
  const leftValues = enumeratedValues(left.nodes);
  const rightValues = enumeratedValues(right.nodes);
  if (leftValues)
    return leftValues.every((value) => [a, b].some((side) => !satisfies(value, side, context.opposite)));
  if (rightValues) return areDisjoint(b, a, context, depth);
  return sharedTypes(left.nodes, right.nodes).every((type) => {
    if (type === 'string') return disjointStrings(left.nodes, right.nodes, context.opposite);
    if (type === 'number') return disjointNumbers(left.nodes, right.nodes);
    if (depth >= MAX_DEPTH) return false;
    if (type === 'object') return disjointObjects(left.nodes, right.nodes, context, depth);
    return type === 'array' && disjointArrays(left.nodes, right.nodes, context, depth);
  });
}

/** Without alternatives, it is not known what they evaluate. */
const keywordsOf = ({ nodes }: Expanded): Conjunction =>
  nodes.filter(({ schema }) => !isScope(schema)).map((node) => ({ node, part: 'keywords' }));

/** Types that both sides allow. Integers count as numbers. Implied types do not exclude other types. */
function sharedTypes(left: KeywordNodes, right: KeywordNodes): string[] {
  const stated = (nodes: KeywordNodes): ReadonlySet<string> =>
    nodes.some(({ schema }) => schema.type !== undefined)
      ? new Set([...typesOf(nodes)].map((type) => (type === 'integer' ? 'number' : type)))
      : new Set(['null', 'boolean', 'number', 'string', 'array', 'object']);
  const rightTypes = stated(right);
  return [...stated(left)].filter((type) => rightTypes.has(type));
}

function disjointStrings(left: KeywordNodes, right: KeywordNodes, { languages }: ValidationContext): boolean {
  const a = stringLanguage(left, languages);
  const b = stringLanguage(right, languages);
  return a !== null && b !== null && isEmptyLanguage(languages.both(a, b));
}

function disjointNumbers(left: KeywordNodes, right: KeywordNodes): boolean {
  const { minimum, maximum } = numberAssertions([...left, ...right], false);
  if (minimum === null || maximum === null) return false;
  const room = compareNumbers(maximum.value, minimum.value);
  return room < 0 || (room === 0 && (minimum.exclusive || maximum.exclusive));
}

/** A key that both sides require, or that one requires and the other forbids, separates them. */
function disjointObjects(
  left: KeywordNodes,
  right: KeywordNodes,
  context: SchemaContext,
  depth: number,
): boolean {
  const keys = new Set([...requiredProperties(left), ...requiredProperties(right)]);
  return [...keys].some((key) =>
    areDisjoint(
      propertySchemas(left, key, context),
      propertySchemas(right, key, context),
      context,
      depth + 1,
    ),
  );
}

function disjointArrays(
  left: KeywordNodes,
  right: KeywordNodes,
  context: SchemaContext,
  depth: number,
): boolean {
  const { min, max } = countRange([...left, ...right], 'minItems', 'maxItems');
  if (min > max) return true;
  return Array.from({ length: Math.min(min, 8) }, (_, i) => i).some((i) =>
    areDisjoint(
      itemSchemas(left, i, context.document),
      itemSchemas(right, i, context.document),
      context,
      depth + 1,
    ),
  );
}
