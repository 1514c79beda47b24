import { schemaError } from '../rules/grammar-error.ts';
import { isJsonObject, type JsonObject } from './keywords.ts';

/** Keywords after draft 7. */
const LATER = [
  ...['prefixItems', 'minContains', 'maxContains', 'unevaluatedItems', 'unevaluatedProperties'],
  ...['dependentRequired', 'dependentSchemas'],
];

/** What the draft that a document names by `$schema` changes. Without a name, 2020-12 applies. */
export class Draft {
  /** Up to draft 7: all keywords beside `$ref` are ignored. */
  readonly #isOld: boolean;

  constructor(document: unknown) {
    const name = isJsonObject(document) ? document.$schema : undefined;
    this.#isOld = typeof name === 'string' && /json-schema\.org\/(draft-0?[3-7]\/)?schema/.test(name);
  }

  /** Whether the keywords beside a schema's `$ref` count. */
  readsBeside(schema: JsonObject): boolean {
    return !(this.#isOld && typeof schema.$ref === 'string');
  }

  /** @throws GrammarError for keywords of later drafts: validators of the draft ignore them */
  requireKnown(schema: JsonObject, path: string): void {
    const later = this.#isOld ? LATER.find((keyword) => Object.hasOwn(schema, keyword)) : undefined;
    if (later === undefined || !this.readsBeside(schema)) return;
    throw schemaError(`${path}/${later}`, 'the keyword is of a later draft; name that draft in "$schema"');
  }

  /**
   * Returns a schema as 2020-12 writes it: draft 4's boolean exclusive bounds, and `nullable` of OpenAPI 3.0.
   */
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
