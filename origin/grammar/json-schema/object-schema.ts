import { type Expression, NOTHING } from '../expression.ts';
import { countFacts } from './assertions.ts';
import type { Own } from './conjunction.ts';
import { TYPE_OF_KEYWORD } from './keywords.ts';
import { memberGraph } from './member-graph.ts';
import { type ObjectKeys, objectKeys } from './object-keys.ts';
import type { SchemaContext } from './schema-context.ts';
import { schemaError } from './schema-error.ts';

const MAX_COUNTED = 200;

const OBJECT_KEYWORDS = Object.keys(TYPE_OF_KEYWORD).filter(
  (keyword) => TYPE_OF_KEYWORD[keyword] === 'object',
);

/**
 * Objects with their declared members in the order of declaration, optional ones present or not, and other members
 * after them.
 */
export function objectExpression(own: Own, context: SchemaContext): Expression {
  const isFree = own.every(({ schema }) => OBJECT_KEYWORDS.every((keyword) => schema[keyword] === undefined));
  if (isFree) return context.json.anyObject;
  const keys = objectKeys(own, context);
  const { min, max } = countFacts(own, 'minProperties', 'maxProperties');
  const required = keys.declared.filter((member) => member.required).length;
  if (max < required || min > max) return NOTHING;
  const most = keys.others.length > 0 ? Number.POSITIVE_INFINITY : keys.declared.length;
  const isCounted = min > required || max < most;
  if (isCounted) checkCounts(own, keys, min, max);
  return context.json.objectOf(memberGraph(keys, isCounted ? { min, max } : null, context));
}

function checkCounts(own: Own, keys: ObjectKeys, min: number, max: number): void {
  const placeOf = (keyword: string): string =>
    `${own.find(({ schema }) => schema[keyword] !== undefined)?.path ?? '#'}/${keyword}`;
  if (keys.others.length > 0 && min > keys.declared.length + 1) {
    throw schemaError(placeOf('minProperties'), 'cannot be enforced where undeclared keys may repeat');
  }
  if (min > MAX_COUNTED)
    throw schemaError(placeOf('minProperties'), `more than ${MAX_COUNTED} is not supported`);
  if (Math.min(max, keys.declared.length) > MAX_COUNTED) {
    throw schemaError(placeOf('maxProperties'), `more than ${MAX_COUNTED} is not supported`);
  }
}
