import { ModelError } from '../../model/config/model-json.ts';
import type { MetadataValue } from './gguf-header.ts';

/**
 * Reads the keys of one architecture, such as `llama.block_count`, and remembers which ones were read: a key that nothing
 * reads may change logits and is refused.
 */
export class GgufKeys {
  readonly architecture: string;
  readonly #metadata: ReadonlyMap<string, MetadataValue>;
  readonly #read = new Set<string>();

  constructor(metadata: ReadonlyMap<string, MetadataValue>, architecture: string) {
    this.#metadata = metadata;
    this.architecture = architecture;
  }

  has(name: string): boolean {
    return this.#metadata.has(this.#key(name));
  }

  /** @throws ModelError that names the key if it is no number, or absent without default */
  number(name: string, absent?: number): number {
    const value = this.#take(name) ?? absent;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    throw this.fault(name, 'a number');
  }

  flag(name: string, absent: boolean): boolean {
    const value = this.#take(name) ?? absent;
    if (typeof value === 'boolean') return value;
    throw this.fault(name, 'true or false');
  }

  text(name: string, absent: string): string {
    const value = this.#take(name) ?? absent;
    if (typeof value === 'string') return value;
    throw this.fault(name, 'a text');
  }

  /**
   * A list of numbers or of flags as 0 and 1, or null if it is absent. A few keys of this kind are not the architecture's.
   * @throws ModelError
   */
  list(name: string): number[] | null {
    const value = this.#take(name) ?? this.#metadata.get(name);
    if (value === undefined) return null;
    if (typeof value === 'object' && ArrayBuffer.isView(value)) return Array.from(value);
    throw this.fault(name, 'a list of numbers');
  }

  /** Marks keys as read that do not change logits. */
  ignore(...names: readonly string[]): void {
    for (const name of names) this.#read.add(this.#key(name));
  }

  /** @throws ModelError that names a key of the architecture which was not read */
  requireAllRead(): void {
    for (const key of this.#metadata.keys()) {
      if (!key.startsWith(`${this.architecture}.`) || this.#read.has(key)) continue;
      throw new ModelError(`key ${JSON.stringify(key)} is unknown, so its effect on the logits is unknown`);
    }
  }

  fault(name: string, allowed: string): ModelError {
    const value = this.#metadata.get(this.#key(name));
    const received = value === undefined ? 'missing' : JSON.stringify(value).slice(0, 80);
    return new ModelError(`key "${this.#key(name)}" is ${received}; it must be ${allowed}`);
  }

  #key(name: string): string {
    return `${this.architecture}.${name}`;
  }

  #take(name: string): MetadataValue | undefined {
    this.#read.add(this.#key(name));
    return this.#metadata.get(this.#key(name));
  }
}
