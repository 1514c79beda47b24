import { GrammarError } from '../grammar-error.ts';
import { checkKeywords } from './keywords.ts';

export type SchemaObject = Readonly<Record<string, unknown>>;

/** One schema of a document. Equal paths are the same node. */
export interface SchemaNode {
  /** Where it stands, as a JSON pointer fragment: `#/properties/a`. */
  readonly path: string;
  readonly schema: boolean | SchemaObject;
}

/** A fault of a schema, told with the place of the keyword. */
export function schemaError(path: string, message: string): GrammarError {
  return new GrammarError(`${path}: ${message}`);
}

const MAX_DEPTH = 500;

/** The schemas of a document by path, read and checked when first visited. */
export class SchemaDocument {
  readonly root: SchemaNode;
  readonly #value: unknown;
  readonly #nodes = new Map<string, SchemaNode>();
  /** Paths by what `$id` and `$anchor` call them. */
  #names: Map<string, string> | null = null;

  constructor(value: unknown) {
    this.#value = value;
    this.root = this.#node(value, '#');
  }

  /** The schema under a keyword, or deeper: `child(node, 'properties', 'a')`. */
  child(node: SchemaNode, ...keys: readonly (string | number)[]): SchemaNode {
    let value: unknown = node.schema;
    for (const key of keys) value = (value as Record<string | number, unknown>)[key];
    return this.#node(value, node.path + keys.map((key) => `/${escapePointer(String(key))}`).join(''));
  }

  /** The schema a `$ref` names. Only references into the same document can be followed. */
  resolve(reference: unknown, path: string): SchemaNode {
    if (typeof reference !== 'string') throw schemaError(path, 'must be a string');
    const target = reference.startsWith('#/') || reference === '#' ? reference : this.#namedPath(reference);
    if (target === undefined) throw schemaError(path, `cannot be resolved inside the schema: ${reference}`);
    let value = this.#value;
    const keys = pointerKeys(target, path);
    for (const key of keys) {
      const known = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
      if (!known) throw schemaError(path, `points to nothing: ${reference}`);
      value = (value as Record<string, unknown>)[key];
    }
    return this.#node(value, `#${keys.map((key) => `/${escapePointer(key)}`).join('')}`);
  }

  #node(value: unknown, path: string): SchemaNode {
    const known = this.#nodes.get(path);
    if (known) return known;
    if (typeof value !== 'boolean' && !isSchemaObject(value)) {
      throw schemaError(path, 'a schema must be an object or a boolean');
    }
    if (path.split('/').length > MAX_DEPTH)
      throw schemaError(path.slice(0, 80), 'the schema is nested too deeply');
    if (typeof value !== 'boolean') checkKeywords(value, path);
    const node: SchemaNode = { path, schema: value };
    this.#nodes.set(path, node);
    return node;
  }

  #namedPath(reference: string): string | undefined {
    if (this.#names === null) {
      this.#names = new Map();
      collectNames(this.#value, '#', this.#names);
    }
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    const hash = reference.indexOf('#');
    const base = hash > 0 ? this.#names.get(reference.slice(0, hash)) : undefined;
    return base === undefined ? undefined : base + reference.slice(hash + 1);
  }
}

export function isSchemaObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function collectNames(value: unknown, path: string, names: Map<string, string>): void {
  if (typeof value !== 'object' || value === null || path.split('/').length > MAX_DEPTH) return;
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner === 'string') {
      if (key === '$id') names.set(inner.replace(/#$/, ''), path);
      else if (key === '$anchor') names.set(`#${inner}`, path);
    } else if (!['enum', 'const', 'default', 'examples'].includes(key)) {
      collectNames(inner, `${path}/${escapePointer(key)}`, names);
    }
  }
}

function pointerKeys(pointer: string, path: string): string[] {
  try {
    const keys = pointer.split('/').slice(1).map(decodeURIComponent);
    return keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  } catch {
    throw schemaError(path, 'is not a valid reference');
  }
}

function escapePointer(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
