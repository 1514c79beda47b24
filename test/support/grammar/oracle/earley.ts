import type { Bnf, BnfSymbol } from './bnf.ts';

interface Item {
  readonly rule: number;
  readonly alternative: number;
  readonly dot: number;
  readonly origin: number;
  /** Bytes of an incomplete character. */
  readonly partial: readonly number[];
}

/**
 * A textbook Earley recogniser over bytes, without automata, sharing or caches. It handles nullable rules as
 * Aycock and Horspool do, and does not predict unproductive rules.
 */
export class EarleyChart {
  readonly #bnf: Bnf;
  readonly #nullable: ReadonlySet<number>;
  readonly #productive: ReadonlySet<number>;
  readonly #sets: Item[][] = [];

  constructor(bnf: Bnf) {
    this.#bnf = bnf;
    this.#nullable = fixpoint(bnf, (symbol, known) => symbol.kind === 'rule' && known.has(symbol.rule));
    this.#productive = fixpoint(bnf, (symbol, known) => symbol.kind !== 'rule' || known.has(symbol.rule));
    this.#sets.push(this.#close(this.#predicted(bnf.root, 0), 0));
  }

  get length(): number {
    return this.#sets.length - 1;
  }

  get accepting(): boolean {
    return this.#sets.at(-1)!.some((item) => {
      const production = this.#bnf.rules[item.rule]![item.alternative]!;
      return item.rule === this.#bnf.root && item.origin === 0 && item.dot === production.length;
    });
  }

  /** Reads one byte. Returns false, without a change, if no text begins so. */
  push(byte: number): boolean {
    const kernel: Item[] = [];
    for (const item of this.#sets.at(-1)!) {
      const symbol = this.#next(item);
      if (symbol?.kind === 'byte' && symbol.byte === byte) kernel.push(advance(item));
      if (symbol?.kind === 'char') {
        const partial = [...item.partial, byte];
        const reach = codePointsBeginning(partial);
        const some = reach?.ranges.some(([lo, hi]) => symbol.ranges.some(([a, b]) => a <= hi && lo <= b));
        if (reach && some) kernel.push(reach.complete ? advance(item) : { ...item, partial });
      }
    }
    if (kernel.length === 0) return false;
    this.#sets.push(this.#close(kernel, this.#sets.length));
    return true;
  }

  /** Whether these bytes may come next. */
  accepts(bytes: Uint8Array): boolean {
    const before = this.length;
    const accepted = bytes.every((byte) => this.push(byte));
    while (this.length > before) this.pop();
    return accepted;
  }

  pop(): void {
    this.#sets.pop();
  }

  #next(item: Item): BnfSymbol | undefined {
    return this.#bnf.rules[item.rule]![item.alternative]![item.dot];
  }

  #predicted(rule: number, origin: number): Item[] {
    const items: Item[] = [];
    this.#bnf.rules[rule]!.forEach((production, alternative) => {
      const possible = production.every((s) => s.kind !== 'rule' || this.#productive.has(s.rule));
      if (possible) items.push({ rule, alternative, dot: 0, origin, partial: [] });
    });
    return items;
  }

  #close(kernel: readonly Item[], position: number): Item[] {
    const set: Item[] = [];
    const seen = new Set<string>();
    const waiting = new Map<number, Item[]>();
    const add = (item: Item): void => {
      const key = `${item.rule}.${item.alternative}.${item.dot}.${item.origin}.${item.partial}`;
      if (!seen.has(key)) {
        seen.add(key);
        set.push(item);
      }
    };
    for (const item of kernel) add(item);
    for (let i = 0; i < set.length; i++) {
      const item = set[i]!;
      const symbol = this.#next(item);
      if (symbol === undefined) {
        if (item.origin === position) continue;
        for (const other of this.#sets[item.origin]!) {
          const expected = this.#next(other);
          if (expected?.kind === 'rule' && expected.rule === item.rule) add(advance(other));
        }
      } else if (symbol.kind === 'rule') {
        if (!waiting.has(symbol.rule)) {
          waiting.set(symbol.rule, []);
          for (const predicted of this.#predicted(symbol.rule, position)) add(predicted);
        }
        if (this.#nullable.has(symbol.rule)) add(advance(item));
      }
    }
    return set;
  }
}

function advance(item: Item): Item {
  return { ...item, dot: item.dot + 1, partial: [] };
}

/** The least set of rules that have an alternative whose symbols all pass the test. */
function fixpoint(bnf: Bnf, good: (symbol: BnfSymbol, known: ReadonlySet<number>) => boolean): Set<number> {
  const known = new Set<number>();
  for (let before = -1; before !== known.size; ) {
    before = known.size;
    bnf.rules.forEach((alternatives, rule) => {
      if (alternatives.some((production) => production.every((symbol) => good(symbol, known))))
        known.add(rule);
    });
  }
  return known;
}

/** The code points whose UTF-8 form begins with these bytes; null if there are none. */
function codePointsBeginning(
  bytes: readonly number[],
): { ranges: [number, number][]; complete: boolean } | null {
  const lead = bytes[0]!;
  const length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
  if (length === 0 || bytes.length > length) return null;
  if (bytes.slice(1).some((byte) => byte >> 6 !== 2)) return null;
  let lo = length === 1 ? lead : lead & (0xff >> (length + 1));
  for (const byte of bytes.slice(1)) lo = lo * 64 + (byte & 63);
  const missing = 64 ** (length - bytes.length);
  lo *= missing;
  const smallest = [0, 0, 0x80, 0x800, 0x10000][length]!;
  const from = Math.max(lo, smallest);
  const past = Math.min(lo + missing - 1, 0x10ffff);
  const ranges: [number, number][] = [
    [from, Math.min(past, 0xd7ff)],
    [Math.max(from, 0xe000), past],
  ];
  const valid = ranges.filter(([a, b]) => a <= b);
  return valid.length === 0 ? null : { ranges: valid, complete: bytes.length === length };
}
