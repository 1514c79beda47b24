import { schemaError } from '../grammar-error.ts';
import { Draft } from './draft.ts';
import { type CheckedSchema, checkKeywords, excerpt, isJsonObject, type JsonObject } from './keywords.ts';
import { SchemaContents } from './schema-contents.ts';
import { childPath, pathKeys, ReferenceResolver } from './schema-references.ts';

/** A schema within a document. The path identifies it. */
export interface SchemaNode {
  /** JSON pointer fragment: `#/properties/a`. Of equal schemas, the path of the first that was visited. */
  readonly path: string;
  readonly schema: boolean | CheckedSchema;
}

const MAX_DEPTH = 500;

/** The schemas of a document by path. Each is checked on its first visit. */
export class SchemaDocument {
  readonly root: SchemaNode;
  /** llguidance's `x-guidance: {"lenient": true}`: keywords that cannot be enforced are ignored. */
  readonly lenient: boolean;
  readonly #ignored: Set<string>;
  readonly #value: unknown;
  readonly #draft: Draft;
  readonly #nodes = new Map<string, SchemaNode>();
  /** The nodes by what the document says there, so that a schema keeps its path within conditions derived from it. */
  readonly #nodeOf = new WeakMap<object, SchemaNode>();
  /** Equal schemas share a node, so that they are compiled once. */
  readonly #contents: SchemaContents;
  readonly #nodeWith = new Map<number, SchemaNode>();
  /** Created for the first reference. */
  #references: ReferenceResolver | null = null;

  /** @param ignored gets the keywords and formats that are ignored because no specification knows them */
  constructor(value: unknown, ignored: Set<string>) {
    const options = isJsonObject(value) ? value['x-guidance'] : undefined;
    this.lenient = isJsonObject(options) && options.lenient === true;
    this.#ignored = ignored;
    this.#value = value;
    this.#draft = new Draft(value);
    this.#contents = new SchemaContents(value);
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

  /** A `$dynamicRef` is a `$ref` unless several schemas have its anchor. */
  #withStaticReference(schema: JsonObject): JsonObject {
    const { $dynamicRef, ...rest } = schema;
    if (typeof $dynamicRef !== 'string' || rest.$ref !== undefined) return schema;
    const anchor = $dynamicRef.slice($dynamicRef.indexOf('#') + 1);
    return this.#resolver.dynamicAnchors(anchor) > 1 ? schema : { ...rest, $ref: $dynamicRef };
  }

  get #resolver(): ReferenceResolver {
    this.#references ??= new ReferenceResolver(this.#value, MAX_DEPTH, this.#draft);
    return this.#references;
  }

  #target(reference: string, path: string): string | null {
    try {
      return this.#resolver.pathOfReference(reference, path);
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
    const node = typeof value === 'boolean' ? { path, schema: value } : this.#checked(value, path);
    this.#nodes.set(path, node);
    return node;
  }

  #checked(value: JsonObject, path: string): SchemaNode {
    const known = this.#nodeOf.get(value);
    if (known) return known;
    const schema = this.#withStaticReference(this.#draft.modernized(value));
    for (const keyword of checkKeywords(schema, path, this.lenient)) this.#ignored.add(keyword);
    const content = this.#contents.of(value);
    const node = this.#nodeWith.get(content) ?? { path, schema: schema as CheckedSchema };
    this.#nodeWith.set(content, node);
    this.#nodeOf.set(value, node);
    return node;
  }
}
