import { schemaError } from '../grammar-error.ts';
import { type CheckedSchema, checkKeywords, excerpt, isJsonObject } from './keywords.ts';
import { childPath, pathKeys, ReferenceResolver } from './schema-references.ts';

/** A schema within a document. The path identifies it. */
export interface SchemaNode {
  /** JSON pointer fragment: `#/properties/a`. */
  readonly path: string;
  readonly schema: boolean | CheckedSchema;
}

const MAX_DEPTH = 500;

/** The schemas of a document by path. Each is checked on its first visit. */
export class SchemaDocument {
  readonly root: SchemaNode;
  readonly #value: unknown;
  readonly #nodes = new Map<string, SchemaNode>();
  /** Created for the first reference. */
  #references: ReferenceResolver | null = null;

  constructor(value: unknown) {
    this.#value = value;
    this.root = this.#node(value, '#');
  }

  /** Returns the schema at a keyword or deeper: `child(node, 'properties', 'a')`. */
  child(node: SchemaNode, ...keys: readonly (string | number)[]): SchemaNode {
    let value: unknown = node.schema;
    for (const key of keys) value = (value as Record<string | number, unknown>)[key];
    return this.#node(value, childPath(node.path, keys));
  }

  /**
   * Returns the schema that a `$ref` names.
   * @throws GrammarError if it is not in the same document
   */
  resolve(reference: unknown, path: string): SchemaNode {
    if (typeof reference !== 'string') throw schemaError(path, 'must be a string');
    const target = this.#target(reference, path);
    if (target === null) throw schemaError(path, `cannot be resolved within the schema: ${reference}`);
    let value = this.#value;
    for (const key of pathKeys(target)) {
      const known = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
      if (!known) throw schemaError(path, `points to nothing in the schema: ${reference}`);
      value = (value as Record<string, unknown>)[key];
    }
    return this.#node(value, target);
  }

  #target(reference: string, path: string): string | null {
    this.#references ??= new ReferenceResolver(this.#value, MAX_DEPTH);
    try {
      return this.#references.pathOfReference(reference, path);
    } catch {
      throw schemaError(path, `is not a valid reference: ${reference}`);
    }
  }

  #node(value: unknown, path: string): SchemaNode {
    const known = this.#nodes.get(path);
    if (known) return known;
    if (typeof value !== 'boolean' && !isJsonObject(value)) {
      throw schemaError(path, `a schema must be an object or a boolean, received ${excerpt(value)}`);
    }
    if (path.split('/').length > MAX_DEPTH)
      throw schemaError(path.slice(0, 80), `the schema is nested more than ${MAX_DEPTH} levels deep`);
    if (typeof value !== 'boolean') checkKeywords(value, path);
    const node: SchemaNode = { path, schema: value };
    this.#nodes.set(path, node);
    return node;
  }
}
