import { matches } from '../automaton/dfa.ts';
import { itemDemands } from './array-schema.ts';
import { countFacts, isEqual, numberFacts, typesOf } from './assertions.ts';
import { branchesOf, type Conjunction, expand, type Own } from './conjunction.ts';
import { decimalOf, isMultiple } from './decimal.ts';
import { isSchemaObject } from './keywords.ts';
import { keyDemands, requiredKeys, valueDemands } from './object-keys.ts';
import type { SchemaContext } from './schema-context.ts';
import { stringLanguage } from './string-schema.ts';

/** Whether a given value satisfies a conjunction: decides what is left of `enum` and `const`. */
export function satisfies(value: unknown, conjunction: Conjunction, context: SchemaContext): boolean {
  context.budget.spend(50);
  const expanded = expand(conjunction, context.document);
  if (expanded.impossible) return false;
  const choice = expanded.alternatives[0];
  if (choice) {
    const branches = branchesOf(expanded, choice, context.document);
    const count = branches.filter((branch) => satisfies(value, branch, context)).length;
    return choice.part === 'anyOf' ? count > 0 : count === 1;
  }
  return isListed(value, expanded.own, context) && satisfiesRest(value, expanded.own, context);
}

function isListed(value: unknown, own: Own, context: SchemaContext): boolean {
  return own.every(({ schema }) => {
    if (Object.hasOwn(schema, 'const') && !isEqual(schema.const, value)) return false;
    if (schema.enum === undefined) return true;
    context.budget.spend(20 * schema.enum.length);
    return schema.enum.some((other) => isEqual(other, value));
  });
}

/** The keywords apart from `enum`, `const` and the combining ones. */
export function satisfiesRest(value: unknown, own: Own, context: SchemaContext): boolean {
  if (own.some(({ schema }) => schema.type !== undefined) && !hasType(value, typesOf(own))) return false;
  if (typeof value === 'number') return satisfiesNumber(value, own);
  if (typeof value === 'string') {
    const language = stringLanguage(own, context.languages);
    return language === null || matches(language, value);
  }
  if (Array.isArray(value)) return satisfiesArray(value, own, context);
  return !isSchemaObject(value) || satisfiesObject(value, own, context);
}

function hasType(value: unknown, types: ReadonlySet<string>): boolean {
  if (typeof value === 'number')
    return types.has('number') || (types.has('integer') && Number.isInteger(value));
  if (value === null) return types.has('null');
  return types.has(Array.isArray(value) ? 'array' : typeof value);
}

function satisfiesNumber(value: number, own: Own): boolean {
  // JSON text may name a number beyond all doubles; it would be written as null.
  if (!Number.isFinite(value)) return false;
  const { minimum, maximum, multiples } = numberFacts(own, false);
  if (minimum && (minimum.exclusive ? value <= minimum.value : value < minimum.value)) return false;
  if (maximum && (maximum.exclusive ? value >= maximum.value : value > maximum.value)) return false;
  return multiples.every((multiple) => isMultiple(decimalOf(value), decimalOf(multiple.value)));
}

function satisfiesArray(value: readonly unknown[], own: Own, context: SchemaContext): boolean {
  const { min, max } = countFacts(own, 'minItems', 'maxItems');
  if (value.length < min || value.length > max) return false;
  const unique = own.some(({ schema }) => schema.uniqueItems === true);
  if (unique && value.some((item, i) => value.slice(i + 1).some((other) => isEqual(item, other))))
    return false;
  return value.every((item, i) => satisfies(item, itemDemands(own, i, context.document), context));
}

function satisfiesObject(
  value: Readonly<Record<string, unknown>>,
  own: Own,
  context: SchemaContext,
): boolean {
  const keys = Object.keys(value);
  const { min, max } = countFacts(own, 'minProperties', 'maxProperties');
  if (keys.length < min || keys.length > max) return false;
  if ([...requiredKeys(own)].some((key) => !Object.hasOwn(value, key))) return false;
  const names = keyDemands(own, context.document);
  return keys.every(
    (key) =>
      satisfies(key, names, context) && satisfies(value[key], valueDemands(own, key, context), context),
  );
}
