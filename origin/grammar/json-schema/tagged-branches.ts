import { canonical } from '../rules/exact-json.ts';
import { enumeratedValues, typesOf } from './assertions.ts';
import type { Conjunction } from './conjunction.ts';
import { expand } from './expansion.ts';
import { propertySchemas, requiredProperties } from './object-properties.ts';
import type { SchemaContext } from './schema-context.ts';

/**
 * The values that a branch lists for itself or for a required property, by the JSON pointer of the property.
 * Every value that the branch generates has one of them.
 */
type ListedTags = ReadonlyMap<string, ReadonlySet<string>>;

/** Maximum nesting of a tag. */
const MAX_DEPTH = 3;

/**
 * Returns for each branch the indices of those that it may overlap with, as far as tags tell: a property that
 * all branches require with listed values. Unlike a comparison of all pairs, this takes time in proportion to
 * the branches.
 */
export function rivalsByTag(
  branches: readonly Conjunction[],
  context: SchemaContext,
): readonly (readonly number[])[] {
  const listed = branches.map((branch) => tagsOf(branch, context));
  const tag = mostFrequent(listed.flatMap((tags) => [...tags.keys()]));
  const all = branches.map((_, i) => i);
  if (tag === undefined) return all.map((i) => all.filter((j) => j !== i));
  const untagged = all.filter((i) => !listed[i]!.has(tag));
  const byValue = new Map<string, number[]>();
  for (const i of all)
    for (const value of listed[i]!.get(tag) ?? []) byValue.set(value, [...(byValue.get(value) ?? []), i]);
  return all.map((i) => {
    const values = listed[i]!.get(tag);
    const sharing = values && [...values].flatMap((value) => byValue.get(value)!);
    return [...new Set(sharing ? [...untagged, ...sharing] : all)]
      .filter((j) => j !== i)
      .sort((a, b) => a - b);
  });
}

function tagsOf(branch: Conjunction, context: SchemaContext): ListedTags {
  const tags = new Map<string, ReadonlySet<string>>();
  const visit = (pointer: string, conjunction: Conjunction, depth: number): void => {
    const { nodes } = expand(conjunction, context.document);
    const values = enumeratedValues(nodes);
    context.budget.spend(100 + 10 * (values?.length ?? 0));
    if (values !== null) tags.set(pointer, new Set(values.map(canonical)));
    const types = typesOf(nodes, context.style.openObjects);
    // A value that is no object has no properties.
    if (depth === MAX_DEPTH || types.size !== 1 || !types.has('object')) return;
    for (const key of requiredProperties(nodes))
      visit(`${pointer}/${key}`, propertySchemas(nodes, key, context), depth + 1);
  };
  visit('', branch, 0);
  return tags;
}

function mostFrequent(tags: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].reduce<[string | undefined, number]>(
    (best, candidate) => (candidate[1] > best[1] ? candidate : best),
    [undefined, 0],
  )[0];
}
