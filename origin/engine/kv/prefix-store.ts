export interface PrefixStoreShape {
  /** Positions of a chunk. */
  readonly chunk: number;
  /** Bytes of the KV of one chunk. */
  readonly chunkBytes: number;
  readonly budgetBytes: number;
}

/** Counters since the start; `bytes` is the present size. */
export interface PrefixStoreStatus {
  readonly bytes: number;
  readonly storedChunks: number;
  readonly restoredTokens: number;
  readonly evictedChunks: number;
}

/** One chunk of a prompt, after the chunks on the way from the root. */
interface Node {
  /** Null for a namespace's root. */
  readonly parent: Node | null;
  readonly key: string;
  readonly children: Map<string, Node>;
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

/**
 * Keeps the KV of prompt chunks beyond the slots: a radix tree per namespace over the fixed grid of prefill chunks. The
 * bytes are those of the original prefill, so a restored prefix gives the same bits.
 *
 * The least recently used chunk is evicted first. A use counts for the chunks before it, too, so the oldest chunk never has
 * a successor. Memory never exceeds the budget, because the bytes of an evicted chunk are used again.
 */
export class PrefixStore {
  readonly #shape: PrefixStoreShape;
  readonly #roots = new Map<string, Node>();
  /** All chunks, least recently used first. */
  readonly #used = new Set<Node>();
  readonly #counts = { storedChunks: 0, restoredTokens: 0, evictedChunks: 0 };

  constructor(shape: PrefixStoreShape) {
    this.#shape = shape;
  }

  get status(): PrefixStoreStatus {
    return { bytes: this.#used.size * this.#shape.chunkBytes, ...this.#counts };
  }

  /** Returns how many positions at the start of a prompt are stored: whole chunks within the first `limit` positions. */
  lengthOf(namespace: string, prompt: Int32Array, limit: number): number {
    return this.#path(namespace, prompt, limit).length * this.#shape.chunk;
  }

  /** Returns the KV of positions [start, end), chunk by chunk. They are valid until the next `add`. */
  take(namespace: string, prompt: Int32Array, start: number, end: number): readonly Uint8Array[] {
    const path = this.#path(namespace, prompt, end);
    this.#use(path);
    this.#counts.restoredTokens += end - start;
    return path.slice(start / this.#shape.chunk).map(({ bytes }) => bytes);
  }

  /**
   * Adds the chunk that ends at `end`. Returns its bytes for the caller to fill; null if it is stored already, if a chunk
   * before it is not, or if there is no room beside the prompt's own chunks.
   */
  add(namespace: string, prompt: Int32Array, end: number): Uint8Array | null {
    const start = end - this.#shape.chunk;
    const path = this.#path(namespace, prompt, end);
    this.#use(path);
    if (path.length * this.#shape.chunk !== start) return null;
    const bytes = this.#freeBytes(new Set(path));
    if (bytes === null) return null;
    const parent = path.at(-1) ?? this.#root(namespace);
    const node: Node = { parent, key: keyOf(prompt, start, end), children: new Map(), bytes };
    parent.children.set(node.key, node);
    this.#counts.storedChunks++;
    this.#use([...path, node]);
    return bytes;
  }

  /** The stored chunks at the start of a prompt. */
  #path(namespace: string, prompt: Int32Array, limit: number): Node[] {
    const { chunk } = this.#shape;
    const path: Node[] = [];
    let node = this.#roots.get(namespace);
    for (let end = chunk; node !== undefined && end <= limit; end += chunk) {
      node = node.children.get(keyOf(prompt, end - chunk, end));
      if (node !== undefined) path.push(node);
    }
    return path;
  }

  #root(namespace: string): Node {
    const known = this.#roots.get(namespace);
    if (known !== undefined) return known;
    const root: Node = { parent: null, key: namespace, children: new Map(), bytes: NO_BYTES };
    this.#roots.set(namespace, root);
    return root;
  }

  /** Each chunk becomes more recent than its successors. */
  #use(path: readonly Node[]): void {
    for (const node of path.toReversed()) {
      this.#used.delete(node);
      this.#used.add(node);
    }
  }

  /** Returns new bytes, or those of the oldest chunk if that is not one of `kept`. Null without room or memory. */
  #freeBytes(kept: ReadonlySet<Node>): Uint8Array | null {
    const { chunkBytes, budgetBytes } = this.#shape;
    if ((this.#used.size + 1) * chunkBytes <= budgetBytes) {
      const bytes = allocate(chunkBytes);
      if (bytes !== null) return bytes;
    }
    const [oldest] = this.#used;
    if (oldest === undefined || kept.has(oldest)) return null;
    this.#evict(oldest);
    return oldest.bytes;
  }

  #evict(node: Node): void {
    this.#used.delete(node);
    this.#counts.evictedChunks++;
    const { parent, key } = node;
    parent?.children.delete(key);
    if (parent?.parent === null && parent.children.size === 0) this.#roots.delete(parent.key);
  }
}

/** The ids as text: equal chunks have equal keys. */
const keyOf = (prompt: Int32Array, start: number, end: number): string =>
  String.fromCharCode(...new Uint16Array(prompt.slice(start, end).buffer));

/** Returns null if the system has no memory left. */
function allocate(bytes: number): Uint8Array | null {
  try {
    return new Uint8Array(bytes);
  } catch {
    return null;
  }
}
