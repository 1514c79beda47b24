import { schemaError } from '../rules/grammar-error.ts';
import { Draft } from './draft.ts';
import {
  type CheckedSchema,
  checkKeywords,
  excerpt,
  isAnnotation,
  isJsonObject,
  type JsonObject,
  withPlainCounts,
} from './keywords.ts';
import { childPath, pathKeys, ReferenceResolver, SCHEMA_MAPS, VALUE_KEYWORDS } from './schema-references.ts';

/** A schema within a document. The path identifies it. */
export interface SchemaNode {
  /**
   * JSON pointer fragment: `#/properties/a`. If the document has dynamic anchors, the URIs of the resources
   * that led here precede it, outermost first. Of equal schemas, it is the path of the first that was
   * visited.
   */
  readonly path: string;
  readonly schema: boolean | CheckedSchema;
}

const MAX_DEPTH = 500;

/** Boolean schemas are equal wherever they are. */
const ALWAYS: SchemaNode = { path: 'true', schema: true };
export const NEVER: SchemaNode = { path: 'false', schema: false };

/** The schemas of a document by path. Each is checked on its first visit. */
export class SchemaDocument {
  readonly root: SchemaNode;
  /** llguidance's `x-guidance: {"lenient": true}`: keywords that cannot be enforced are ignored. */
  readonly lenient: boolean;
  readonly #ignored: Set<string>;
  readonly #value: unknown;
  readonly #draft: Draft;
  readonly #nodes = new Map<string, SchemaNode>();
  /**
   * Equal schemas share a node, so that they are compiled once. By their resources and what the document says
   * there.
   */
  readonly #nodeWith = new Map<string, SchemaNode>();
  /** By the object in the document, because paths are long and are asked for often. */
  readonly #nodeOf = new WeakMap<object, SchemaNode>();
  readonly #contents: SchemaContents;
  readonly #hasDynamicAnchors: boolean;
  /** Created for the first reference. */
  #references: ReferenceResolver | null = null;

  /** @param ignored gets the keywords and formats that are ignored because no specification knows them */
  constructor(value: unknown, ignored: Set<string>) {
    const options = isJsonObject(value) ? value['x-guidance'] : undefined;
    const { lenient, ...others } = isJsonObject(options) ? options : {};
    this.lenient = lenient === true;
    this.#ignored = ignored;
    for (const name of Object.keys(others)) this.ignore(`x-guidance.${name}`);
    this.#value = value;
    this.#draft = new Draft(value);
    const text = JSON.stringify(value) ?? '';
    const hasRootId = isJsonObject(value) && value.$id !== undefined;
    // An $id below the root gives references another base.
    this.#contents = new SchemaContents(text.split('"$id":').length === (hasRootId ? 2 : 1));
    this.#hasDynamicAnchors = text.includes('"$dynamicAnchor"');
    this.root = this.#node(value, this.#entered('#'));
  }

  /** Names a keyword that has no effect. */
  ignore(keyword: string): void {
    this.#ignored.add(keyword);
  }

  /** Returns the schema at a keyword or deeper: `child(node, 'properties', 'a')`. */
  child(node: SchemaNode, ...keys: readonly (string | number)[]): SchemaNode {
    let value: unknown = node.schema;
    for (const key of keys) value = (value as Record<string | number, unknown>)[key];
    if (typeof value === 'boolean') return value ? ALWAYS : NEVER;
    const cached = isJsonObject(value) ? this.#nodeOf.get(value) : undefined;
    if (cached !== undefined) return cached;
    const child = this.#node(value, this.#entered(childPath(node.path, keys)));
    // With dynamic anchors, one schema has a node for each list of resources that lead to it.
    if (isJsonObject(value) && !this.#hasDynamicAnchors) this.#nodeOf.set(value, child);
    return child;
  }

  /**
   * Returns the schema that a `$ref` names.
   * @throws GrammarError if it is not in the same document
   */
  resolve(reference: unknown, path: string): SchemaNode {
    if (typeof reference !== 'string') throw schemaError(path, 'must be a string');
    const { scope, pointer } = parted(path);
    const target = this.#target(reference, pointer, path);
    if (target === null) throw schemaError(path, `cannot be resolved within the schema: ${reference}`);
    let value = this.#value;
    for (const key of pathKeys(target)) {
      const exists = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
      if (!exists) throw schemaError(path, `points to nothing in the schema: ${reference}`);
      value = (value as Record<string, unknown>)[key];
    }
    return this.#node(value, this.#entered(scope + target));
  }

  /** Returns a path with the resource that it is in. */
  #entered(path: string): string {
    if (!this.#hasDynamicAnchors) return path;
    const { scope, pointer } = parted(path);
    const uri = this.#resolver.baseOf(pointer);
    return scope.split(' ').includes(uri) ? path : `${scope}${uri} ${pointer}`;
  }

  /** Writes a `$dynamicRef` as the `$ref` that it stands for here. */
  #withStaticReference(schema: JsonObject, path: string): JsonObject {
    const { $dynamicRef, $ref, allOf, ...rest } = schema;
    if (typeof $dynamicRef !== 'string') return schema;
    const { scope, pointer } = parted(path);
    const reference = this.#resolver.staticReference($dynamicRef, pointer, scope.trim().split(' '));
    if ($ref === undefined) return { ...rest, ...(allOf === undefined ? {} : { allOf }), $ref: reference };
    return { ...rest, $ref, allOf: [...(Array.isArray(allOf) ? allOf : []), { $ref: reference }] };
  }

  get #resolver(): ReferenceResolver {
    this.#references ??= new ReferenceResolver(this.#value, MAX_DEPTH, this.#draft);
    return this.#references;
  }

  #target(reference: string, pointer: string, path: string): string | null {
    try {
      return this.#resolver.pathOfReference(reference, pointer);
    } catch {
      throw schemaError(path, `is not a valid reference: ${reference}`);
    }
  }

  #node(value: unknown, path: string): SchemaNode {
    if (typeof value === 'boolean') return value ? ALWAYS : NEVER;
    const cached = this.#nodes.get(path);
    if (cached) return cached;
    if (!isJsonObject(value)) {
      throw schemaError(path, `a schema must be an object or a boolean, received ${excerpt(value)}`);
    }
    if (path.split('/').length > MAX_DEPTH)
      throw schemaError(path.slice(0, 80), `the schema is nested more than ${MAX_DEPTH} levels deep`);
    const node = this.#checked(value, path);
    this.#nodes.set(path, node);
    return node;
  }

  #checked(value: JsonObject, path: string): SchemaNode {
    const key = `${parted(path).scope} ${this.#contents.of(value)}`;
    const cached = this.#nodeWith.get(key);
    if (cached) return cached;
    this.#draft.requireKnown(value, path);
    const schema = withPlainCounts(this.#withStaticReference(this.#draft.modernized(value), path));
    for (const keyword of checkKeywords(schema, path, this.lenient)) this.#ignored.add(keyword);
    const node = { path, schema: schema as CheckedSchema };
    this.#nodeWith.set(key, node);
    return node;
  }
}

/** Parts a path into the URIs of its resources, each followed by a space, and the pointer. */
function parted(path: string): { readonly scope: string; readonly pointer: string } {
  const hash = path.indexOf('#');
  return { scope: path.slice(0, hash), pointer: path.slice(hash) };
}

/** Numbers the contents of schemas: schemas that differ only in annotations have equal numbers. */
class SchemaContents {
  readonly #isShared: boolean;
  readonly #numbers = new Map<string, number>();
  readonly #numberOf = new WeakMap<object, number>();
  #count = 0;

  /** @param isShared whether all references have the same base, so that equal ones mean the same schema */
  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  of(schema: JsonObject): number {
    const cached = this.#numberOf.get(schema);
    if (cached !== undefined) return cached;
    const key = this.#isShared ? this.#key(schema) : null;
    const number = (key === null ? undefined : this.#numbers.get(key)) ?? ++this.#count;
    if (key !== null) this.#numbers.set(key, number);
    this.#numberOf.set(schema, number);
    return number;
  }

  #key(schema: JsonObject): string {
    return Object.entries(schema)
      .filter(([keyword]) => keyword === 'discriminator' || !isAnnotation(keyword))
      .map(([keyword, value]) => `${JSON.stringify(keyword)}:${this.#valueKey(keyword, value)}`)
      .join();
  }

  #valueKey(keyword: string, value: unknown): string {
    if (VALUE_KEYWORDS.has(keyword) || keyword === 'dependentRequired') return JSON.stringify(value);
    const inner = (schema: unknown): string =>
      isJsonObject(schema) ? `#${this.of(schema)}` : JSON.stringify(schema);
    if (Array.isArray(value)) return `[${value.map(inner).join()}]`;
    if (!SCHEMA_MAPS.has(keyword) || !isJsonObject(value)) return inner(value);
    return `{${Object.entries(value)
      .map(([name, schema]) => `${JSON.stringify(name)}:${inner(schema)}`)
      .join()}}`;
  }
}
