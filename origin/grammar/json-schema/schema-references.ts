import type { Draft } from './draft.ts';

/** Base URI of a schema without `$id`. */
const DEFAULT_URI = 'schema:///';
/** Keywords whose members are schemas under arbitrary names. */
export const SCHEMA_MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
]);
export const VALUE_KEYWORDS: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);

/** Resolves `$ref` within one document. A schema with `$id` is a resource with its own anchors. */
export class ReferenceResolver {
  /** Path of each URI; anchors follow a `#`. */
  readonly #paths = new Map<string, string>();
  /** URI of each resource by path. */
  readonly #resources = new Map<string, string>();
  /** By name: the URIs of the resources that have a dynamic anchor. */
  readonly #dynamicAnchors = new Map<string, Set<string>>();
  readonly #maxDepth: number;
  readonly #draft: Draft;

  constructor(document: unknown, maxDepth: number, draft: Draft) {
    this.#maxDepth = maxDepth;
    this.#draft = draft;
    this.#resources.set('#', DEFAULT_URI);
    this.#paths.set(DEFAULT_URI, '#');
    this.#collect(document, [], DEFAULT_URI, false);
  }

  /** Returns the path of the schema that a reference at `from` names; null if there is none. */
  pathOfReference(reference: string, from: string): string | null {
    const { uri, fragment } = split(reference, this.baseOf(from));
    const isPointer = fragment === '' || fragment.startsWith('/');
    const base = this.#paths.get(isPointer ? uri : `${uri}#${fragment}`);
    if (base === undefined) return null;
    return isPointer ? childPath(base, pointerKeys(fragment)) : base;
  }

  /**
   * Returns the reference that a `$dynamicRef` at `from` stands for: to the outermost resource with its
   * anchor.
   * @param scope URIs of the resources that led to it, outermost first
   */
  staticReference(reference: string, from: string, scope: readonly string[]): string {
    const { uri, fragment } = split(reference, this.baseOf(from));
    const resources = this.#dynamicAnchors.get(fragment);
    if (!resources?.has(uri)) return reference;
    return `${scope.find((base) => resources.has(base)) ?? uri}#${fragment}`;
  }

  /** The URI of the innermost resource that contains a path. */
  baseOf(path: string): string {
    if (this.#resources.size === 1) return this.#resources.get('#')!;
    let resource = path;
    while (!this.#resources.has(resource)) resource = resource.slice(0, resource.lastIndexOf('/'));
    return this.#resources.get(resource)!;
  }

  #collect(value: unknown, keys: readonly string[], outer: string, isMap: boolean): void {
    if (typeof value !== 'object' || value === null || keys.length > this.#maxDepth) return;
    const base = isMap ? outer : this.#register(value as Readonly<Record<string, unknown>>, keys, outer);
    for (const [key, inner] of Object.entries(value)) {
      if (!isMap && VALUE_KEYWORDS.has(key)) continue;
      this.#collect(inner, [...keys, key], base, !isMap && SCHEMA_MAPS.has(key));
    }
  }

  /** Records a schema's `$id` and `$anchor`. Returns the URI of its resource. */
  #register(schema: Readonly<Record<string, unknown>>, keys: readonly string[], outer: string): string {
    if (!this.#draft.readsBeside(schema)) return outer;
    const { $id = draft4Id(schema, keys.length === 0), $dynamicAnchor, $anchor = $dynamicAnchor } = schema;
    if (typeof $id !== 'string' && typeof $anchor !== 'string') return outer;
    const path = childPath('#', keys);
    let base = outer;
    if (typeof $id === 'string') {
      const { uri, fragment } = split($id, outer);
      // Draft 7 writes anchors as `$id` with a fragment.
      if (fragment !== '') this.#paths.set(`${uri}#${fragment}`, path);
      else {
        base = uri;
        this.#paths.set(uri, path);
        this.#resources.set(path, uri);
      }
    }
    if (typeof $dynamicAnchor === 'string') {
      const resources = this.#dynamicAnchors.get($dynamicAnchor) ?? new Set();
      this.#dynamicAnchors.set($dynamicAnchor, resources.add(base));
    }
    if (typeof $anchor === 'string') this.#paths.set(`${base}#${$anchor}`, path);
    return base;
  }
}

/**
 * Draft 4 writes `id`. Nested ones that are no anchor do not count: generators of schemas wrote paths into
 * them, while all references mean the root.
 */
function draft4Id({ id }: Readonly<Record<string, unknown>>, isRoot: boolean): unknown {
  return isRoot || (typeof id === 'string' && id.startsWith('#')) ? id : undefined;
}

/** @throws URIError if a key has an invalid percent-encoding */
function pointerKeys(pointer: string): string[] {
  return pointer.split('/').slice(1).map(decodeURIComponent).map(unescapeKey);
}

/** The keys of a path. */
export function pathKeys(path: string): string[] {
  return path.split('/').slice(1).map(unescapeKey);
}

export function childPath(base: string, keys: readonly (string | number)[]): string {
  return base + keys.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function unescapeKey(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

function split(reference: string, base: string): { uri: string; fragment: string } {
  const hash = reference.indexOf('#');
  const name = hash === -1 ? reference : reference.slice(0, hash);
  return { uri: resolved(name, base), fragment: hash === -1 ? '' : reference.slice(hash + 1) };
}

function resolved(name: string, base: string): string {
  if (name === '') return base;
  return URL.canParse(name, base) ? new URL(name, base).href : name;
}
