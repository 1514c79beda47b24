import type { TokenBytes } from '../tokenizer/token-bytes.ts';
import type { TokenHistory } from './token-history.ts';

/** Longer tails are cut to this many tokens, as in llama.cpp. */
const MAX_TAIL_LENGTH = 20;

/** A text at which repeats end. */
export interface Breaker {
  readonly bytes: Uint8Array;
  /**
   * Entry n: the tokens of what follows the first n bytes; null if these end within a character. Empty for a
   * single byte.
   */
  readonly tokens: readonly (readonly number[] | null)[];
}

/** Sequences of bytes or of tokens: each is the way from the root to a node. */
interface Tree extends Map<number, Tree> {}

/** For the node where a tail ends: the indices of the breakers that it belongs to. */
type Tails = Map<Tree, number[]>;

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

function entryOf<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const entry = map.get(key) ?? create();
  map.set(key, entry);
  return entry;
}

/**
 * The breakers of one request. Looks a token up when it first occurs: few tokens of a large vocabulary ever
 * do. What a token or a position costs does not depend on the number of breakers.
 */
export class Breakers {
  readonly #tokenBytes: TokenBytes;
  readonly #beginnings: Tree = new Map();
  /** Indices of the breakers that end at a node. */
  readonly #endings = new Map<Tree, number[]>();
  readonly #tails: Tree = new Map();
  /**
   * The tokens that must follow a token that ends with a beginning, or that is the first of a breaker's own
   * tokens.
   */
  readonly #tailsAfter = new Map<Tree | number, Tails>();
  readonly #breakings = new Map<number, Breaking>();

  constructor(breakers: readonly Breaker[], tokenBytes: TokenBytes) {
    this.#tokenBytes = tokenBytes;
    breakers.forEach(({ bytes, tokens: [spelling, ...rests] }, index) => {
      const [first, ...others] = spelling ?? [];
      if (first !== undefined && others.length > 0) this.#addTail(first, others, ANY_BREAKER);
      let node = this.#beginnings;
      bytes.forEach((byte, at) => {
        node = entryOf(node, byte, () => new Map());
        const tail = rests[at];
        if (tail) this.#addTail(node, tail, index);
      });
      entryOf(this.#endings, node, () => []).push(index);
    });
  }

  #addTail(after: Tree | number, tokens: readonly number[], breaker: number): void {
    let end = this.#tails;
    for (const id of tokens.slice(0, MAX_TAIL_LENGTH)) end = entryOf(end, id, () => new Map());
    const tails = entryOf(this.#tailsAfter, after, () => new Map<Tree, number[]>());
    entryOf(tails, end, () => []).push(breaker);
  }

  /** Whether a token's own bytes contain a breaker. */
  areIn(id: number): boolean {
    return this.#of(id).whole.size > 0;
  }

  /**
   * Returns the number of tokens after position `head` that belong to the longest breaker that starts in its
   * token; −1 if none does before position `end`.
   */
  lengthAfter(tokens: Int32Array, head: number, end: number): number {
    const { whole, tails } = this.#of(tokens[head]!);
    let longest = whole.size > 0 ? 0 : -1;
    if (tails.length === 0) return longest;
    let node: Tree | undefined = this.#tails;
    for (let at = head + 1; node !== undefined; at++) {
      for (const breakers of tails) {
        if (breakers.get(node)?.some((breaker) => !whole.has(breaker))) longest = at - head - 1;
      }
      node = at < end ? node.get(tokens[at]!) : undefined;
    }
    return longest;
  }

  #of(id: number): Breaking {
    let breaking = this.#breakings.get(id);
    if (breaking === undefined) {
      breaking = this.#lookUp(id);
      this.#breakings.set(id, breaking);
    }
    return breaking;
  }

  #lookUp(id: number): Breaking {
    const { bytes, offsets } = this.#tokenBytes;
    const end = offsets[id + 1] ?? 0;
    const complete: number[] = [];
    const tail = this.#tailsAfter.get(id);
    const tails = tail ? [tail] : [];
    for (let start = offsets[id] ?? 0; start < end; start++) {
      let node: Tree | undefined = this.#beginnings;
      for (let at = start; node !== undefined && at < end; at++) {
        node = node.get(bytes[at]!);
        for (const breaker of (node && this.#endings.get(node)) ?? []) complete.push(breaker);
      }
      const after = node && this.#tailsAfter.get(node);
      if (after) tails.push(after);
    }
    if (complete.length === 0 && tails.length === 0) return NO_BREAKING;
    return { whole: complete.length === 0 ? NO_BREAKING.whole : new Set(complete), tails };
  }
}

/** Finds the latest breaker in a growing history. Each call reads new tokens and a tail's length back. */
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

  /** The number of tokens after the breaker that starts last within the window; else the window's length. */
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
