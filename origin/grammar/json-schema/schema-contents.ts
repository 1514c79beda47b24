import { isAnnotation, isJsonObject, type JsonObject } from './keywords.ts';
import { SCHEMA_MAPS, VALUE_KEYWORDS } from './schema-references.ts';

/** Numbers the contents of schemas: schemas that differ only in annotations have equal numbers. */
export class SchemaContents {
  /** Whether all references have the same base, so that equal ones mean the same schema. */
  readonly #isShared: boolean;
  readonly #numbers = new Map<string, number>();
  readonly #numberOf = new WeakMap<object, number>();
  #count = 0;

  constructor(document: unknown) {
    const { $id, id, ...rest } = isJsonObject(document) ? document : {};
    this.#isShared = !JSON.stringify(rest).includes('"$id":');
  }

  of(schema: JsonObject): number {
    const known = this.#numberOf.get(schema);
    if (known !== undefined) return known;
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
    if (VALUE_KEYWORDS.has(keyword)) return JSON.stringify(value);
    const inner = (schema: unknown): string =>
      isJsonObject(schema) ? `#${this.of(schema)}` : JSON.stringify(schema);
    if (Array.isArray(value)) return `[${value.map(inner).join()}]`;
    if (!SCHEMA_MAPS.has(keyword) || !isJsonObject(value)) return inner(value);
    return `{${Object.entries(value)
      .map(([name, schema]) => `${JSON.stringify(name)}:${inner(schema)}`)
      .join()}}`;
  }
}
