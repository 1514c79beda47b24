import { schemaError } from '../grammar-error.ts';
import { type CheckedSchema, isSchemaObject } from './keywords.ts';
import type { SchemaDocument, SchemaNode } from './schema-document.ts';

/**
 * One thing a value must satisfy: a whole schema, its keywords apart from the combining ones, or one of its lists of
 * alternatives. A conjunction is a list of demands.
 */
export interface Demand {
  readonly node: SchemaNode;
  readonly part: 'all' | 'own' | 'anyOf' | 'oneOf';
}

export type Conjunction = readonly Demand[];

/** A list of alternatives of which one is to be chosen. */
export interface Choice extends Demand {
  readonly part: 'anyOf' | 'oneOf';
  readonly branches: number;
}

export function all(...nodes: readonly SchemaNode[]): Conjunction {
  return nodes.map((node) => ({ node, part: 'all' }));
}

/** Equal keys demand the same. */
export function keyOf(conjunction: Conjunction): string {
  return conjunction.map(({ node, part }) => `${part} ${node.path}`).join('\n');
}

/** Schemas whose own keywords, apart from the combining ones, must hold; in the order in which they were met. */
export type Own = readonly (SchemaNode & { readonly schema: CheckedSchema })[];

/** A conjunction with `$ref` and `allOf` followed. */
export interface Expanded {
  /** Some schema is `false`. */
  readonly impossible: boolean;
  readonly own: Own;
  /** Lists of alternatives not yet chosen from. */
  readonly alternatives: readonly Choice[];
}

export function expand(conjunction: Conjunction, document: SchemaDocument): Expanded {
  const own = new Map<string, Own[number]>();
  const alternatives = new Map<string, Choice>();
  /** By path; false while it is being followed. */
  const followed = new Map<string, boolean>();
  let impossible = false;
  const visit = (demand: Demand): void => {
    const { node, part } = demand;
    const { schema, path } = node;
    if (schema === true) return;
    if (schema === false) {
      impossible = true;
      return;
    }
    if (part === 'own') own.set(path, { path, schema });
    else if (part !== 'all') {
      alternatives.set(keyOf([demand]), { node, part, branches: schema[part]?.length ?? 0 });
    } else {
      const known = followed.get(path);
      if (known === false) throw schemaError(path, 'the reference leads back to itself without progress');
      if (known) return;
      followed.set(path, false);
      visit({ node, part: 'own' });
      if (schema.$ref !== undefined)
        visit({ node: document.resolve(schema.$ref, `${path}/$ref`), part: 'all' });
      schema.allOf?.forEach((_, i) => {
        visit({ node: document.child(node, 'allOf', i), part: 'all' });
      });
      if (schema.anyOf !== undefined) visit({ node, part: 'anyOf' });
      if (schema.oneOf !== undefined) visit({ node, part: 'oneOf' });
      followed.set(path, true);
    }
  };
  for (const demand of conjunction) visit(demand);
  return { impossible, own: [...own.values()], alternatives: [...alternatives.values()] };
}

/** The conjunctions that result from choosing each branch of one list of alternatives. */
export function branchesOf(expanded: Expanded, choice: Choice, document: SchemaDocument): Conjunction[] {
  const rest: Demand[] = [
    ...expanded.own.map((node) => ({ node, part: 'own' }) as const),
    ...expanded.alternatives.filter((demand) => demand !== choice),
  ];
  const { node, part, branches } = choice;
  return Array.from({ length: branches }, (_, i) => [
    ...rest,
    { node: document.child(node, part, i), part: 'all' },
    ...tagDemands(choice),
  ]);
}

/**
 * OpenAPI wants the property that a discriminator names in every value, whatever the branches require: Pydantic's do
 * not where the tag has a default, and without it a value may match several.
 */
function tagDemands({ node: { path, schema }, part }: Choice): Demand[] {
  if (part !== 'oneOf' || typeof schema === 'boolean' || !isSchemaObject(schema.discriminator)) return [];
  const { propertyName } = schema.discriminator;
  if (typeof propertyName !== 'string') return [];
  return [{ node: { path: `${path}/discriminator`, schema: { required: [propertyName] } }, part: 'own' }];
}
