import type { MaskWalk } from './trie-walk.ts';

/** The tokens a parser state allows. */
export interface TokenMask {
  readonly mask: Uint32Array;
  /** Where the rule under study ends while tokens go on; null = at too many nodes to list. */
  readonly returning: readonly Returning[] | null;
}

/** Nodes of one token tree. */
export interface Returning {
  /** Key of the masks of what is below the nodes, by state. */
  readonly owner: number;
  readonly walk: MaskWalk;
  readonly nodes: readonly number[];
}

/** Masks kept even where they are larger than the cache. */
const LEAST_MASKS = 16;

/** Masks by owner and state, the least recently used ones dropped first. One cache serves a whole vocabulary. */
export class MaskCache {
  readonly #mostBytes: number;
  readonly #masks = new Map<number, TokenMask>();
  #bytes = 0;
  #owners = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#masks.size;
  }

  /** A number to build keys from that no one else has. */
  newOwner(): number {
    return ++this.#owners;
  }

  get(owner: number, state: number): TokenMask | undefined {
    const key = keyOf(owner, state);
    const mask = this.#masks.get(key);
    if (mask !== undefined) {
      this.#masks.delete(key);
      this.#masks.set(key, mask);
    }
    return mask;
  }

  /** To be called after `get` has found nothing. */
  set(owner: number, state: number, mask: TokenMask): void {
    this.#masks.set(keyOf(owner, state), mask);
    this.#bytes += bytesOf(mask);
    for (const [oldest, dropped] of this.#masks) {
      if (this.#bytes <= this.#mostBytes || this.#masks.size <= LEAST_MASKS) return;
      this.#masks.delete(oldest);
      this.#bytes -= bytesOf(dropped);
    }
  }
}

function bytesOf({ mask, returning }: TokenMask): number {
  return (returning ?? []).reduce((sum, { nodes }) => sum + 8 * nodes.length, mask.byteLength);
}

/** States are numbered below 2^26, so the key is exact for 2^27 owners. */
function keyOf(owner: number, state: number): number {
  return owner * 2 ** 26 + state;
}
