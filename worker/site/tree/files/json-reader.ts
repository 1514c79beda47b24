import { isJsonObject, type JsonObject } from '@continuo/shared/json-object.ts';

/** A file that is no tree. The message names the place and what is expected there. */
export class ImportError extends Error {}

/** Reads parsed JSON with checks. `place` names the value in errors, such as `nodes[3].text`. */
export class JsonReader {
  readonly #value: unknown;
  readonly #place: string;

  constructor(value: unknown, place: string) {
    this.#value = value;
    this.#place = place;
  }

  /** @throws ImportError */
  fail(expected: string): never {
    const shown = JSON.stringify(this.#value)?.slice(0, 40) ?? 'absent';
    throw new ImportError(`${this.#place} is ${shown}, but must be ${expected}.`);
  }

  field(name: string): JsonReader {
    const place = this.#place === '' ? name : `${this.#place}.${name}`;
    return new JsonReader(this.#object()[name], place);
  }

  #object(): JsonObject {
    return isJsonObject(this.#value) ? this.#value : this.fail('an object');
  }

  text(): string {
    return typeof this.#value === 'string' ? this.#value : this.fail('a text');
  }

  flag(): boolean {
    return typeof this.#value === 'boolean' ? this.#value : this.fail('true or false');
  }

  number(): number {
    return typeof this.#value === 'number' ? this.#value : this.fail('a number');
  }

  /** An integer of at least 0. */
  count(): number {
    const value = this.#value;
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
      ? value
      : this.fail('an integer of at least 0');
  }

  list<T>(read: (item: JsonReader) => T, limits: { readonly min?: number; readonly max?: number } = {}): T[] {
    const { min = 0, max = Number.POSITIVE_INFINITY } = limits;
    if (!Array.isArray(this.#value)) return this.fail('a list');
    const { length } = this.#value;
    if (length < min || length > max)
      throw new ImportError(`${this.#place} has ${length} items, but must have ${min} to ${max}.`);
    return this.#value.map((item, index) => read(new JsonReader(item, `${this.#place}[${index}]`)));
  }

  record<T>(read: (item: JsonReader) => T): Record<string, T> {
    return Object.fromEntries(Object.keys(this.#object()).map((name) => [name, read(this.field(name))]));
  }

  nullable<T>(read: (value: JsonReader) => T): T | null {
    return this.#value === null ? null : read(this);
  }

  /** Returns undefined for an absent value. */
  optional<T>(read: (value: JsonReader) => T): T | undefined {
    return this.#value === undefined ? undefined : read(this);
  }
}
