import { schemaError } from '../grammar-error.ts';
import { type CheckedSchema, isJsonObject } from './keywords.ts';
import type { SchemaDocument, SchemaNode } from './schema-document.ts';

/**
 * A condition on a value: a whole schema, its keywords without the combining ones, or one of its lists of alternatives.
 */
export interface SchemaPart {
  readonly node: SchemaNode;
  readonly part: 'whole' | 'keywords' | 'anyOf' | 'oneOf';
}

/** Conditions that a value must satisfy together. */
export type Conjunction = readonly SchemaPart[];

/** A list of alternatives from which no branch is chosen yet. */
export interface Alternatives extends SchemaPart {
  readonly part: 'anyOf' | 'oneOf';
  readonly branches: number;
}

export function conjunctionOf(...nodes: readonly SchemaNode[]): Conjunction {
  return nodes.map((node) => ({ node, part: 'whole' }));
}

/** Conjunctions with equal keys are equal. */
export function conjunctionKey(conjunction: Conjunction): string {
  return conjunction.map(({ node, part }) => `${part} ${node.path}`).join('\n');
}

/** A schema object whose keywords apply, except `$ref`, `allOf`, `anyOf` and `oneOf`. */
export interface KeywordNode extends SchemaNode {
  readonly schema: CheckedSchema;
}

/** Schema objects whose keywords apply together. */
export type KeywordNodes = readonly KeywordNode[];

/** A conjunction in which `$ref` and `allOf` are resolved. */
export interface Expanded {
  /** Whether a schema is `false`. */
  readonly impossible: boolean;
  readonly nodes: KeywordNodes;
  /** Lists of alternatives from which no branch is chosen yet. */
  readonly alternatives: readonly Alternatives[];
}

/**
 * Resolves `$ref` and `allOf`.
 * @throws GrammarError if a reference cannot be resolved or leads back to itself
 */
export function expand(conjunction: Conjunction, document: SchemaDocument): Expanded {
  const nodes = new Map<string, KeywordNode>();
  const alternatives = new Map<string, Alternatives>();
  /** By path: false during the visit, true afterwards. */
  const followed = new Map<string, boolean>();
  let impossible = false;
  const visit = ({ node, part }: SchemaPart): void => {
    const { schema, path } = node;
    if (schema === true) return;
    if (schema === false) {
      impossible = true;
      return;
    }
    if (part === 'keywords') nodes.set(path, { path, schema });
    else if (part !== 'whole') {
      alternatives.set(conjunctionKey([{ node, part }]), { node, part, branches: schema[part]?.length ?? 0 });
    } else {
      const known = followed.get(path);
      if (known === false)
        throw schemaError(path, 'the reference leads back to itself without a value in between');
      if (known) return;
      followed.set(path, false);
      visit({ node, part: 'keywords' });
      if (schema.$ref !== undefined)
        visit({ node: document.resolve(schema.$ref, `${path}/$ref`), part: 'whole' });
      schema.allOf?.forEach((_, i) => {
        visit({ node: document.child(node, 'allOf', i), part: 'whole' });
      });
      if (schema.anyOf !== undefined) visit({ node, part: 'anyOf' });
      if (schema.oneOf !== undefined) visit({ node, part: 'oneOf' });
      followed.set(path, true);
    }
  };
  for (const schemaPart of conjunction) visit(schemaPart);
  return { impossible, nodes: [...nodes.values()], alternatives: [...alternatives.values()] };
}

/** Returns one conjunction per branch of a list of alternatives. */
export function branchesOf(
  expanded: Expanded,
  choice: Alternatives,
  document: SchemaDocument,
): Conjunction[] {
  const rest: SchemaPart[] = [
    ...expanded.nodes.map((node) => ({ node, part: 'keywords' }) as const),
    ...expanded.alternatives.filter((other) => other !== choice),
  ];
  const { node, part, branches } = choice;
  return Array.from({ length: branches }, (_, i) => [
    ...rest,
    { node: document.child(node, part, i), part: 'whole' },
    ...requireDiscriminator(choice),
  ]);
}

/**
 * OpenAPI requires the discriminator property in every value, even if the branches do not. Pydantic's branches do not
 * require a tag with a default, and without the tag a value may match several branches.
 */
function requireDiscriminator({ node: { path, schema }, part }: Alternatives): SchemaPart[] {
  if (part !== 'oneOf' || typeof schema === 'boolean' || !isJsonObject(schema.discriminator)) return [];
  const { propertyName } = schema.discriminator;
  if (typeof propertyName !== 'string') return [];
  return [
    { node: { path: `${path}/discriminator`, schema: { required: [propertyName] } }, part: 'keywords' },
  ];
}
