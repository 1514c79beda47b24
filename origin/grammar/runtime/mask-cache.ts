import type { TrieWalk } from './trie-walk.ts';

/** The tokens a parser state allows. */
export interface TokenMask {
  readonly mask: Uint32Array;
  /** Where the rule under study ends while tokens go on; null = at too many nodes to list. */
  readonly returns: readonly ReturnPoints[] | null;
}

/** Nodes of one token tree. */
export interface ReturnPoints {
  /** Key of the masks of what is below the nodes, by state. */
  readonly namespace: number;
  readonly walk: TrieWalk;
  readonly nodes: readonly number[];
}

/** Masks kept even where they are larger than the cache. */
const MIN_MASKS = 16;

/** Masks by namespace and state, the least recently used ones dropped first. One cache serves a whole vocabulary. */
export class MaskCache {
  readonly #maxBytes: number;
  readonly #masks = new Map<number, TokenMask>();
  #bytes = 0;
  #namespaces = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#masks.size;
  }

  /** A number to build keys from that no one else has. */
  newNamespace(): number {
    return ++this.#namespaces;
  }

  get(namespace: number, state: number): TokenMask | undefined {
    const key = cacheKey(namespace, state);
    const mask = this.#masks.get(key);
    if (mask !== undefined) {
      this.#masks.delete(key);
      this.#masks.set(key, mask);
    }
    return mask;
  }

  /** To be called after `get` has found nothing. */
  set(namespace: number, state: number, mask: TokenMask): void {
    this.#masks.set(cacheKey(namespace, state), mask);
    this.#bytes += maskBytes(mask);
    for (const [oldest, dropped] of this.#masks) {
      if (this.#bytes <= this.#maxBytes || this.#masks.size <= MIN_MASKS) return;
      this.#masks.delete(oldest);
      this.#bytes -= maskBytes(dropped);
    }
  }
}

function maskBytes({ mask, returns }: TokenMask): number {
  return (returns ?? []).reduce((sum, { nodes }) => sum + 8 * nodes.length, mask.byteLength);
}

/** States are numbered below 2^26, so the key is exact for 2^27 owners. */
function cacheKey(namespace: number, state: number): number {
  return namespace * 2 ** 26 + state;
}
