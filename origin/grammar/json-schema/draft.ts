import { isJsonObject, type JsonObject } from './keywords.ts';

/** What the draft that a document names by `$schema` changes. Without a name, 2020-12 applies. */
export class Draft {
  /** Up to draft 7, all keywords beside `$ref` are ignored. */
  readonly #refIsAlone: boolean;

  constructor(document: unknown) {
    const name = isJsonObject(document) ? document.$schema : undefined;
    this.#refIsAlone = typeof name === 'string' && /json-schema\.org\/(draft-0?[3-7]\/)?schema/.test(name);
  }

  /** Whether the keywords beside a schema's `$ref` count. */
  readsBeside(schema: JsonObject): boolean {
    return !(this.#refIsAlone && typeof schema.$ref === 'string');
  }

  /** Returns a schema as 2020-12 writes it: draft 4's boolean exclusive bounds, and `nullable` of OpenAPI 3.0. */
  modernized(schema: JsonObject): JsonObject {
    if (!this.readsBeside(schema)) return { $ref: schema.$ref };
    let modern = schema;
    for (const [bound, exclusive] of EXCLUSIVE_BOUNDS) {
      const { [exclusive]: isExclusive, [bound]: value, ...rest } = modern;
      if (typeof isExclusive !== 'boolean') continue;
      modern = value === undefined ? rest : { ...rest, [isExclusive ? exclusive : bound]: value };
    }
    const { nullable, ...rest } = modern;
    if (typeof nullable !== 'boolean') return modern;
    return nullable && rest.type !== undefined ? { ...rest, type: [rest.type, 'null'].flat() } : rest;
  }
}

const EXCLUSIVE_BOUNDS = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const;
