import { LruMap } from '@continuo/shared/lru-map.ts';
import type { TrieWalk } from './trie-walk.ts';

/** The tokens that a parser state allows. */
export interface TokenMask {
  readonly mask: Uint32Array;
  /** Trie nodes at which the rule ends within a token; null if there are too many to list. */
  readonly returns: readonly ReturnPoints[] | null;
}

/** Nodes of one token trie at which a rule ends. */
export interface ReturnPoints {
  /** Cache namespace of the masks below these nodes, by state. */
  readonly namespace: number;
  readonly walk: TrieWalk;
  readonly nodes: readonly number[];
}

/** Minimum number of masks kept, even if they exceed the cache's memory. */
const MIN_MASKS = 16;

/** An LRU cache of masks by namespace and state. All grammars of a vocabulary share one cache. */
export class MaskCache {
  readonly #maxBytes: number;
  readonly #masks = new LruMap<number, TokenMask>();
  #bytes = 0;
  #namespaces = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#masks.size;
  }

  /** Returns a namespace that is not used yet. */
  newNamespace(): number {
    return ++this.#namespaces;
  }

  get(namespace: number, state: number): TokenMask | undefined {
    return this.#masks.get(cacheKey(namespace, state));
  }

  /** Expects that `get` has returned undefined for the key. */
  set(namespace: number, state: number, mask: TokenMask): void {
    this.#masks.set(cacheKey(namespace, state), mask);
    this.#bytes += maskBytes(mask);
    this.#masks.trim(
      () => this.#bytes > this.#maxBytes && this.#masks.size > MIN_MASKS,
      (dropped) => (this.#bytes -= maskBytes(dropped)),
    );
  }
}

function maskBytes({ mask, returns }: TokenMask): number {
  return (returns ?? []).reduce((sum, { nodes }) => sum + 8 * nodes.length, mask.byteLength);
}

/** State numbers are below 2^26, so that keys are exact for 2^27 namespaces. */
function cacheKey(namespace: number, state: number): number {
  return namespace * 2 ** 26 + state;
}
