import type { MaskWalk } from './mask-walk.ts';

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

/** Masks by owner and state, the least recently used ones dropped first. One cache serves a whole vocabulary. */
export class MaskCache {
  readonly #capacity: number;
  readonly #masks = new Map<number, TokenMask>();
  #owners = 0;

  /** `capacity`: number of masks kept. */
  constructor(capacity: number) {
    this.#capacity = capacity;
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

  set(owner: number, state: number, mask: TokenMask): void {
    this.#masks.set(keyOf(owner, state), mask);
    if (this.#masks.size <= this.#capacity) return;
    const oldest = this.#masks.keys().next();
    if (!oldest.done) this.#masks.delete(oldest.value);
  }
}

/** States are numbered below 2^26, so the key is exact for 2^27 owners. */
function keyOf(owner: number, state: number): number {
  return owner * 2 ** 26 + state;
}
