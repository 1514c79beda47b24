import type { TokenBytes } from '../tokenizer/token-bytes.ts';
import type { TokenHistory } from './token-history.ts';

/** Longer tails are cut to this many tokens, as in llama.cpp. */
const MAX_TAIL_LENGTH = 20;

/** A text at which repeats end. */
export interface Breaker {
  readonly bytes: Uint8Array;
  /** Entry n: the tokens of what follows the first n bytes; null if these end within a character. Empty for a single byte. */
  readonly tokens: readonly (readonly number[] | null)[];
}

/** A node of the tree of all tails. */
interface TailNode {
  readonly next: Map<number, TailNode>;
}

/** For the node where a tail ends: the indices of the breakers that it belongs to. */
type Tails = Map<TailNode, number[]>;

/** A node of the tree of all breakers' bytes: the beginning of some breakers. */
interface ByteNode {
  readonly next: Map<number, ByteNode>;
  /** The tokens that must follow a token that ends with this beginning. */
  readonly tails: Tails;
  /** Indices of the breakers that end here. */
  readonly whole: number[];
}

/** A token's part in breakers. */
interface Breaking {
  /** Breakers that its own bytes contain. */
  readonly whole: ReadonlySet<number>;
  /** Of the breakers that start inside it and end in another token. */
  readonly tails: readonly Tails[];
}

const NO_BREAKING: Breaking = { whole: new Set(), tails: [] };

/** Stands for the breaker of a tail that counts even if the token before it contains the breaker. */
const ANY_BREAKER = -1;

const newByteNode = (): ByteNode => ({ next: new Map(), tails: new Map(), whole: [] });

function childOf<Node extends { next: Map<number, Node> }>(
  parent: Node,
  key: number,
  create: () => Node,
): Node {
  const child = parent.next.get(key) ?? create();
  parent.next.set(key, child);
  return child;
}

/**
 * The breakers of one request. Looks a token up when it first occurs: few tokens of a large vocabulary ever do. What a token or
 * a position costs does not depend on the number of breakers.
 */
export class Breakers {
  readonly #tokenBytes: TokenBytes;
  readonly #beginnings = newByteNode();
  /** Tails of the tokens that breakers' own tokens begin with. */
  readonly #afterFirst = new Map<number, Tails>();
  readonly #tails: TailNode = { next: new Map() };
  readonly #known = new Map<number, Breaking>();

  constructor(breakers: readonly Breaker[], tokenBytes: TokenBytes) {
    this.#tokenBytes = tokenBytes;
    breakers.forEach(({ bytes, tokens: [own, ...rests] }, index) => {
      const [first, ...others] = own ?? [];
      if (first !== undefined && others.length > 0) {
        const tails: Tails = this.#afterFirst.get(first) ?? new Map();
        this.#afterFirst.set(first, tails);
        this.#addTail(tails, others, ANY_BREAKER);
      }
      let node = this.#beginnings;
      bytes.forEach((byte, at) => {
        node = childOf(node, byte, newByteNode);
        const tail = rests[at];
        if (tail) this.#addTail(node.tails, tail, index);
      });
      node.whole.push(index);
    });
  }

  #addTail(tails: Tails, tokens: readonly number[], breaker: number): void {
    let node = this.#tails;
    for (const id of tokens.slice(0, MAX_TAIL_LENGTH)) node = childOf(node, id, () => ({ next: new Map() }));
    tails.set(node, [...(tails.get(node) ?? []), breaker]);
  }

  /** Whether a token's own bytes contain a breaker. */
  areIn(id: number): boolean {
    return this.#of(id).whole.size > 0;
  }

  /**
   * Returns the number of tokens after position `head` that belong to the longest breaker that starts in its token; −1 if none
   * does before position `end`.
   */
  lengthAfter(tokens: Int32Array, head: number, end: number): number {
    const { whole, tails } = this.#of(tokens[head]!);
    let longest = whole.size > 0 ? 0 : -1;
    if (tails.length === 0) return longest;
    let node: TailNode | undefined = this.#tails;
    for (let at = head + 1; node !== undefined; at++) {
      for (const breakers of tails) {
        if (breakers.get(node)?.some((breaker) => !whole.has(breaker))) longest = at - head - 1;
      }
      node = at < end ? node.next.get(tokens[at]!) : undefined;
    }
    return longest;
  }

  #of(id: number): Breaking {
    let breaking = this.#known.get(id);
    if (breaking === undefined) {
      breaking = this.#lookUp(id);
      this.#known.set(id, breaking);
    }
    return breaking;
  }

  #lookUp(id: number): Breaking {
    const { bytes, offsets } = this.#tokenBytes;
    const end = offsets[id + 1] ?? 0;
    const after = this.#afterFirst.get(id);
    const tails = after ? [after] : [];
    const whole = new Set<number>();
    for (let start = offsets[id] ?? 0; start < end; start++) {
      let node: ByteNode | undefined = this.#beginnings;
      for (let at = start; node !== undefined && at < end; at++) {
        node = node.next.get(bytes[at]!);
        for (const breaker of node?.whole ?? []) whole.add(breaker);
      }
      if (node !== undefined && node.tails.size > 0) tails.push(node.tails);
    }
    return whole.size > 0 || tails.length > 0 ? { whole, tails } : NO_BREAKING;
  }
}

/** Finds the latest breaker in a growing history. Each call reads the new tokens, and as far back as a tail can reach. */
export class LatestBreaker {
  readonly #breakers: Pick<Breakers, 'lengthAfter'>;
  /** All breakers that start before this position and have ended are found. */
  #settled = 0;
  /** Start and end of the latest one found. */
  #start = -1;
  #end = -1;
  /** Of the history, at the last call. */
  #length = 0;

  constructor(breakers: Pick<Breakers, 'lengthAfter'>) {
    this.#breakers = breakers;
  }

  /** The number of tokens after the breaker that starts last within the window; the window's length if there is none. */
  lengthSince({ tokens, length }: Pick<TokenHistory, 'tokens' | 'length'>, window: number): number {
    if (length < this.#length) {
      // Tokens were removed.
      this.#settled = 0;
      this.#start = -1;
      this.#end = -1;
    }
    this.#length = length;
    const first = length - window;
    for (let head = length - 1; head >= Math.max(first, this.#settled); head--) {
      const following = this.#breakers.lengthAfter(tokens, head, length);
      if (following < 0) continue;
      this.#start = head;
      this.#end = head + 1 + following;
      break;
    }
    this.#settled = Math.max(this.#settled, length - MAX_TAIL_LENGTH);
    return this.#start >= first ? length - this.#end : window;
  }
}
