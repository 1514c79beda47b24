import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { ConfigFields } from '../families/reading/config-fields.ts';
import type { MetadataValue } from './gguf-header.ts';

/** The keys of one architecture, such as `llama.block_count`, without its name. */
export class GgufKeys extends ConfigFields {
  readonly #architecture: string;
  readonly #metadata: ReadonlyMap<string, MetadataValue>;

  constructor(metadata: ReadonlyMap<string, MetadataValue>, architecture: string) {
    const prefix = `${architecture}.`;
    const entries = [...metadata].filter(([key]) => key.startsWith(prefix));
    super(Object.fromEntries(entries.map(([key, value]) => [key.slice(prefix.length), value])));
    this.#metadata = metadata;
    this.#architecture = architecture;
  }

  /**
   * A list of numbers or of flags as 0 and 1, or null if it is absent. A few keys of this kind are not the
   * architecture's.
   * @throws ModelError
   */
  list(name: string): number[] | null {
    const value = this.value(name) ?? this.#metadata.get(name);
    if (value === undefined) return null;
    if (ArrayBuffer.isView(value)) return Array.from(value as Uint8Array);
    throw this.fault(name, 'a list of numbers');
  }

  /** A number, also as a list of it for each layer. @throws ModelError */
  numberOfLayers(name: string, absent: number): number {
    const value = this.value(name);
    const values = ArrayBuffer.isView(value) ? this.list(name)! : [this.number(name, absent)];
    const [first = NaN] = values;
    if (values.every((each) => each === first)) return first;
    throw this.fault(name, 'one number for all layers');
  }

  /** @throws ModelError that names a key of the architecture which was not read */
  requireAllRead(): void {
    const [unread] = this.unread;
    if (unread === undefined) return;
    const key = JSON.stringify(`${this.#architecture}.${unread}`);
    throw new ModelError(`key ${key} is unknown, so its effect on the logits is unknown`);
  }

  override fault(name: string, allowed: string): ModelError {
    const value = this.value(name);
    const received = value === undefined ? 'missing' : JSON.stringify(value).slice(0, 80);
    return new ModelError(`key "${this.#architecture}.${name}" is ${received}; it must be ${allowed}`);
  }
}
