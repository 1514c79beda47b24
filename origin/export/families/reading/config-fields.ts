import { isDeepStrictEqual } from 'node:util';
import { ModelError } from '@continuo/origin/model/config/model-json.ts';

/**
 * Reads the fields of a config.json and remembers which ones were read, so that a field that nothing reads
 * can be refused. A field that is null counts as absent.
 */
export class ConfigFields {
  readonly #values: Readonly<Record<string, unknown>>;
  /** Path of this object in config.json, such as `rope_scaling.`; empty for the file itself. */
  readonly #path: string;
  readonly #read = new Set<string>();
  readonly #inner = new Map<string, ConfigFields>();
  readonly #defaults: Readonly<Record<string, unknown>>;

  /** @param defaults of fields that the file does not have; a null in the file stays null */
  constructor(
    values: Readonly<Record<string, unknown>>,
    path = '',
    defaults: Readonly<Record<string, unknown>> = {},
  ) {
    this.#values = values;
    this.#path = path;
    this.#defaults = defaults;
  }

  /** The same fields, none read yet, with these defaults. */
  withDefaults(defaults: Readonly<Record<string, unknown>>): ConfigFields {
    return new ConfigFields(this.#values, this.#path, defaults);
  }

  has(name: string): boolean {
    return (this.#value(name) ?? null) !== null;
  }

  /** @throws ModelError that names the field if it is absent without default, or not a finite number */
  number(name: string, absent?: number): number {
    const value = this.#take(name) ?? absent;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    throw this.fault(name, 'a number');
  }

  /** A positive integer. @throws ModelError */
  count(name: string, absent?: number): number {
    const value = this.number(name, absent);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw this.fault(name, 'a positive integer');
  }

  /** A number, or null if it is absent. @throws ModelError */
  optionalNumber(name: string): number | null {
    return this.#take(name) === undefined ? null : this.number(name);
  }

  /** A positive integer, or null if it is absent. @throws ModelError */
  optionalCount(name: string): number | null {
    return this.#take(name) === undefined ? null : this.count(name);
  }

  /** True or false; in Python, null is false. @throws ModelError */
  flag(name: string, absent?: boolean): boolean {
    const value = this.#take(name) ?? (this.#value(name) === null ? false : absent);
    if (typeof value === 'boolean') return value;
    throw this.fault(name, 'true or false');
  }

  text(name: string, absent?: string): string {
    const value = this.#take(name) ?? absent;
    if (typeof value === 'string') return value;
    throw this.fault(name, 'a string');
  }

  /** One of the keys of `choices`; returns its value. @throws ModelError that lists the keys */
  choice<T>(name: string, choices: Readonly<Record<string, T>>, absent?: string): T {
    const key = this.text(name, absent);
    if (Object.hasOwn(choices, key)) return choices[key]!;
    throw this.fault(name, `one of ${Object.keys(choices).join(', ')}`);
  }

  numbers(name: string): readonly number[] {
    const value = this.#take(name);
    if (Array.isArray(value) && value.every((item) => typeof item === 'number')) return value;
    throw this.fault(name, 'a list of numbers');
  }

  texts(name: string): readonly string[] {
    const value = this.#take(name);
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    throw this.fault(name, 'a list of strings');
  }

  /** The fields of an object, or null if it is absent. */
  inner(name: string): ConfigFields | null {
    const earlier = this.#inner.get(name);
    if (earlier !== undefined) return earlier;
    const value = this.#take(name);
    if ((value ?? null) === null) return null;
    if (typeof value !== 'object' || Array.isArray(value)) throw this.fault(name, 'an object');
    const inner = new ConfigFields(value as Record<string, unknown>, `${this.#path}${name}.`);
    this.#inner.set(name, inner);
    return inner;
  }

  /** Any value, for fields of other shapes. */
  value(name: string): unknown {
    return this.#take(name);
  }

  /** Fields that do not change logits whatever their value. */
  ignore(...names: readonly string[]): void {
    for (const name of names) this.#read.add(name);
  }

  /** Fields that change nothing if they have one of these values. @throws ModelError for any other */
  require(name: string, ...allowed: readonly unknown[]): void {
    this.#requireOne(name, allowed, '');
  }

  #requireOne(name: string, allowed: readonly unknown[], why: string): void {
    const value = this.#take(name);
    if ((value ?? null) === null || allowed.some((choice) => isDeepStrictEqual(choice, value))) return;
    throw this.fault(name, (allowed.map((choice) => JSON.stringify(choice)).join(' or ') || 'null') + why);
  }

  /**
   * Fields that nothing reads may say what is so in any case.
   * @param known the values that a field may have, by its name
   * @throws ModelError for any other
   */
  agree(neutral: Readonly<Record<string, readonly unknown[]>>): void {
    for (const name of Object.keys(this.#values)) {
      const allowed = this.#read.has(name) || !Object.hasOwn(neutral, name) ? null : neutral[name]!;
      if (allowed !== null) this.#requireOne(name, allowed, "; the family's code does not read this field");
    }
  }

  /** Fields that were not read and are not null, with their paths. */
  get unread(): string[] {
    const unread = Object.keys(this.#values).filter((name) => this.has(name) && !this.#read.has(name));
    const inner = [...this.#inner.values()].flatMap(({ unread }) => unread);
    return [...unread.map((name) => this.#path + name), ...inner];
  }

  /** An error that names the field, its value and what is supported. */
  fault(name: string, allowed: string): ModelError {
    const value = this.#value(name);
    const received = value === undefined ? 'missing' : JSON.stringify(value);
    return new ModelError(`config.json: ${this.#path}${name} is ${received}; supported is ${allowed}`);
  }

  #take(name: string): unknown {
    this.#read.add(name);
    return this.#value(name) ?? undefined;
  }

  #value(name: string): unknown {
    return this.#values[name] === undefined ? this.#defaults[name] : this.#values[name];
  }
}
