import { acceptsText } from '../automaton/dfa.ts';
import { compareNumbers, isIntegral, isJsonNumber, isMultipleOf, type JsonNumber } from '../rules/decimal.ts';
import { parseExactJson } from '../rules/exact-json.ts';
import { itemSchemas } from './array-schema.ts';
import { countRange, isEqual, type Multiple, numberAssertions, typesOf } from './assertions.ts';
import {
  type Conjunction,
  conjunctionOf,
  type KeywordNode,
  type KeywordNodes,
  SOME_PROPERTY,
} from './conjunction.ts';

import { branchesOf, expand, withoutChoice } from './expansion.ts';
import { holdsJson, isJsonObject } from './keywords.ts';
import { propertyNameSchemas, propertySchemas, requiredProperties } from './object-properties.ts';
import type { ValidationContext } from './schema-context.ts';
import { contentSchemas, stringLanguage } from './string-schema.ts';

/** Whether a value satisfies a conjunction. It filters the values of `enum` and `const`. */
export function satisfies(value: unknown, conjunction: Conjunction, context: ValidationContext): boolean {
  context.budget.spend(50);
  const expanded = expand(conjunction, context.document);
  if (expanded.impossible) return false;
  const choice = expanded.alternatives[0];
  if (choice?.part === 'not') {
    const isViolated = !satisfies(value, conjunctionOf(choice.node), context.opposite);
    return isViolated && satisfies(value, withoutChoice(expanded, choice), context);
  }
  if (choice) {
    const branches = branchesOf(expanded, choice, context.document);
    const alone = branchesOf({ ...expanded, nodes: [], alternatives: [] }, choice, context.document);
    const isExcluded = (index: number): boolean =>
      choice.part === 'oneOf' &&
      alone.some((rival, i) => i !== index && satisfies(value, rival, context.opposite));
    return branches.some((branch, i) => satisfies(value, branch, context) && !isExcluded(i));
  }
  return isListed(value, expanded.nodes, context) && satisfiesKeywords(value, expanded.nodes, context);
}

function isListed(value: unknown, nodes: KeywordNodes, context: ValidationContext): boolean {
  return nodes.every(
    ({ schema }) =>
      !(Object.hasOwn(schema, 'const') && !isEqual(schema.const, value)) &&
      (schema.enum === undefined || context.isIn(schema.enum, value)),
  );
}

/** Checks all keywords except `enum`, `const` and the combining ones. */
function satisfiesKeywords(value: unknown, nodes: KeywordNodes, context: ValidationContext): boolean {
  if (nodes.some(({ schema }) => schema.type !== undefined) && !hasType(value, typesOf(nodes))) return false;
  if (isJsonNumber(value)) return satisfiesNumber(value, nodes);
  if (typeof value === 'string') {
    const language = stringLanguage(nodes, context.languages);
    const hasContent = language === null && nodes.some(({ schema }) => holdsJson(schema));
    if (!hasContent) return language === null || acceptsText(language, value);
    const content = parsedOrUndefined(value);
    return content !== undefined && satisfies(content, contentSchemas(nodes, context), context);
  }
  if (Array.isArray(value)) return satisfiesArray(value, nodes, context);
  return !isJsonObject(value) || satisfiesObject(value, nodes, context);
}

function parsedOrUndefined(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

function hasType(value: unknown, types: ReadonlySet<string>): boolean {
  if (isJsonNumber(value)) return types.has('number') || (types.has('integer') && isIntegral(value));
  if (value === null) return types.has('null');
  return types.has(Array.isArray(value) ? 'array' : typeof value);
}

function satisfiesNumber(value: JsonNumber, nodes: KeywordNodes): boolean {
  // JSON text may contain numbers beyond the range of doubles, which JSON.stringify would write as null.
  if (typeof value === 'number' && !Number.isFinite(value)) return false;
  const { minimum, maximum, multiples, nonMultiples } = numberAssertions(nodes, false);
  const above = minimum === null ? 1 : compareNumbers(value, minimum.value);
  const below = maximum === null ? 1 : compareNumbers(maximum.value, value);
  if (above < 0 || (above === 0 && minimum?.exclusive)) return false;
  if (below < 0 || (below === 0 && maximum?.exclusive)) return false;
  const isMultiple = (multiple: Multiple): boolean => isMultipleOf(value, multiple.value);
  return multiples.every(isMultiple) && !nonMultiples.some(isMultiple);
}

function satisfiesArray(value: readonly unknown[], nodes: KeywordNodes, context: ValidationContext): boolean {
  const { min, max } = countRange(nodes, 'minItems', 'maxItems');
  if (value.length < min || value.length > max) return false;
  const unique = nodes.some(({ schema }) => schema.uniqueItems === true);
  if (unique && value.some((item, i) => value.slice(i + 1).some((later) => isEqual(item, later))))
    return false;
  return (
    nodes.every((node) => satisfiesContains(value, node, context)) &&
    value.every((item, i) => satisfies(item, itemSchemas(nodes, i, context.document), context))
  );
}

function satisfiesContains(
  value: readonly unknown[],
  node: KeywordNode,
  context: ValidationContext,
): boolean {
  const { contains, minContains = 1, maxContains = Number.POSITIVE_INFINITY } = node.schema;
  if (contains === undefined) return true;
  const schema = conjunctionOf(context.document.child(node, 'contains'));
  const count = (by: ValidationContext): number => value.filter((item) => satisfies(item, schema, by)).length;
  return count(context) >= minContains && count(context.opposite) <= maxContains;
}

function satisfiesObject(
  value: Readonly<Record<string, unknown>>,
  nodes: KeywordNodes,
  context: ValidationContext,
): boolean {
  const keys = Object.keys(value);
  const { min, max } = countRange(nodes, 'minProperties', 'maxProperties');
  if (keys.length < min || keys.length > max) return false;
  if ([...requiredProperties(nodes)].some((key) => !Object.hasOwn(value, key))) return false;
  const hasSome = nodes.every(
    ({ schema: { [SOME_PROPERTY]: some } }) =>
      some === undefined ||
      keys.some((key) => satisfies(key, some.names, context) && satisfies(value[key], some.value, context)),
  );
  if (!hasSome) return false;
  const names = propertyNameSchemas(nodes, context.document);
  return keys.every(
    (key) =>
      satisfies(key, names, context) && satisfies(value[key], propertySchemas(nodes, key, context), context),
  );
}
