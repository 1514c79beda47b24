import { schemaError } from '../grammar-error.ts';
import { type CheckedSchema, checkKeywords, isJsonObject } from './keywords.ts';
import { childPath, pathKeys, ReferenceResolver } from './schema-references.ts';

/** One schema of a document. Equal paths are the same node. */
export interface SchemaNode {
  /** Where it stands, as a JSON pointer fragment: `#/properties/a`. */
  readonly path: string;
  readonly schema: boolean | CheckedSchema;
}

const MAX_DEPTH = 500;

/** The schemas of a document by path, read and checked when first visited. */
export class SchemaDocument {
  readonly root: SchemaNode;
  readonly #value: unknown;
  readonly #nodes = new Map<string, SchemaNode>();
  /** Made for the first reference. */
  #references: ReferenceResolver | null = null;

  constructor(value: unknown) {
    this.#value = value;
    this.root = this.#node(value, '#');
  }

  /** The schema under a keyword, or deeper: `child(node, 'properties', 'a')`. */
  child(node: SchemaNode, ...keys: readonly (string | number)[]): SchemaNode {
    let value: unknown = node.schema;
    for (const key of keys) value = (value as Record<string | number, unknown>)[key];
    return this.#node(value, childPath(node.path, keys));
  }

  /** The schema a `$ref` names. Only references into the same document can be followed. */
  resolve(reference: unknown, path: string): SchemaNode {
    if (typeof reference !== 'string') throw schemaError(path, 'must be a string');
    const target = this.#target(reference, path);
    if (target === null) throw schemaError(path, `cannot be resolved inside the schema: ${reference}`);
    let value = this.#value;
    for (const key of pathKeys(target)) {
      const known = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
      if (!known) throw schemaError(path, `points to nothing: ${reference}`);
      value = (value as Record<string, unknown>)[key];
    }
    return this.#node(value, target);
  }

  #target(reference: string, path: string): string | null {
    this.#references ??= new ReferenceResolver(this.#value, MAX_DEPTH);
    try {
      return this.#references.pathOfReference(reference, path);
    } catch {
      throw schemaError(path, 'is not a valid reference');
    }
  }

  #node(value: unknown, path: string): SchemaNode {
    const known = this.#nodes.get(path);
    if (known) return known;
    if (typeof value !== 'boolean' && !isJsonObject(value)) {
      throw schemaError(path, 'a schema must be an object or a boolean');
    }
    if (path.split('/').length > MAX_DEPTH)
      throw schemaError(path.slice(0, 80), 'the schema is nested too deeply');
    if (typeof value !== 'boolean') checkKeywords(value, path);
    const node: SchemaNode = { path, schema: value };
    this.#nodes.set(path, node);
    return node;
  }
}
