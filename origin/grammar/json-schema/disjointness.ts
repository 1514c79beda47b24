import { matchesNothing } from '../automaton/dfa.ts';
import { itemDemands } from './array-schema.ts';
import { countFacts, enumeratedValues, numberFacts, typesOf } from './assertions.ts';
import { branchesOf, type Conjunction, expand, type Own } from './conjunction.ts';
import { requiredKeys, valueDemands } from './object-keys.ts';
import type { SchemaContext } from './schema-context.ts';
import { satisfies } from './schema-validator.ts';
import { stringLanguage } from './string-schema.ts';

/** How deep members and items are compared. */
const MAX_DEPTH = 4;

/**
 * True when certainly no value satisfies both. Only values that the generator can write matter on one side, but every
 * valid value on the other, so keywords are read as JSON Schema means them.
 */
export function areDisjoint(a: Conjunction, b: Conjunction, context: SchemaContext, depth = 0): boolean {
  context.budget.spend(100);
  const left = expand(a, context.document);
  const right = expand(b, context.document);
  if (left.impossible || right.impossible) return true;
  const choice = left.alternatives[0];
  if (choice) {
    const branches = branchesOf(left, choice, context.document);
    return branches.every((branch) => areDisjoint(branch, b, context, depth));
  }
  if (right.alternatives.length > 0) return areDisjoint(b, a, context, depth);
  const leftValues = enumeratedValues(left.own);
  const rightValues = enumeratedValues(right.own);
  if (leftValues)
    return leftValues.every((value) => !satisfies(value, a, context) || !satisfies(value, b, context));
  if (rightValues) return areDisjoint(b, a, context, depth);
  return sharedTypes(left.own, right.own).every((type) => {
    if (type === 'string') return disjointStrings(left.own, right.own, context);
    if (type === 'number') return disjointNumbers(left.own, right.own);
    if (depth >= MAX_DEPTH) return false;
    if (type === 'object') return disjointObjects(left.own, right.own, context, depth);
    return type === 'array' && disjointArrays(left.own, right.own, context, depth);
  });
}

/** Integers count as numbers; a type that is merely implied does not rule the others out. */
function sharedTypes(left: Own, right: Own): string[] {
  const stated = (own: Own): ReadonlySet<string> =>
    own.some(({ schema }) => schema.type !== undefined)
      ? new Set([...typesOf(own)].map((type) => (type === 'integer' ? 'number' : type)))
      : new Set(['null', 'boolean', 'number', 'string', 'array', 'object']);
  const other = stated(right);
  return [...stated(left)].filter((type) => other.has(type));
}

function disjointStrings(left: Own, right: Own, context: SchemaContext): boolean {
  const a = stringLanguage(left, context.languages);
  const b = stringLanguage(right, context.languages);
  return a !== null && b !== null && matchesNothing(context.languages.both(a, b));
}

function disjointNumbers(left: Own, right: Own): boolean {
  const { minimum, maximum } = numberFacts([...left, ...right], false);
  if (minimum === null || maximum === null) return false;
  if (minimum.value === maximum.value) return minimum.exclusive || maximum.exclusive;
  return minimum.value > maximum.value;
}

/** Some key that both require, or that one requires and the other forbids, tells them apart. */
function disjointObjects(left: Own, right: Own, context: SchemaContext, depth: number): boolean {
  const keys = new Set([...requiredKeys(left), ...requiredKeys(right)]);
  return [...keys].some((key) =>
    areDisjoint(valueDemands(left, key, context), valueDemands(right, key, context), context, depth + 1),
  );
}

function disjointArrays(left: Own, right: Own, context: SchemaContext, depth: number): boolean {
  const { min, max } = countFacts([...left, ...right], 'minItems', 'maxItems');
  if (min > max) return true;
  return Array.from({ length: Math.min(min, 8) }, (_, i) => i).some((i) =>
    areDisjoint(
      itemDemands(left, i, context.document),
      itemDemands(right, i, context.document),
      context,
      depth + 1,
    ),
  );
}
