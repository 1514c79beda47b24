/** A grammar as plain productions: the reference for the engine's automata. */
export type BnfSymbol =
  | { readonly kind: 'byte'; readonly byte: number }
  | { readonly kind: 'char'; readonly ranges: readonly (readonly [number, number])[] }
  | { readonly kind: 'rule'; readonly rule: number };

export interface Bnf {
  /** By rule: its alternatives. */
  readonly rules: readonly (readonly (readonly BnfSymbol[])[])[];
  readonly root: number;
}

/** Collects productions. Each repetition becomes a separate rule. */
export class BnfBuilder {
  readonly rules: BnfSymbol[][][] = [];

  add(alternatives: BnfSymbol[][]): BnfSymbol {
    return { kind: 'rule', rule: this.rules.push(alternatives) - 1 };
  }

  bytes(text: Uint8Array): BnfSymbol[] {
    return Array.from(text, (byte) => ({ kind: 'byte', byte }) as const);
  }

  /** One token by id, as the byte 255 and three bytes of the id. Only ids below 512, each a production. */
  tokens(ranges: readonly number[]): BnfSymbol {
    const isIn = (id: number): boolean =>
      ranges.some((lo, i) => i % 2 === 0 && lo <= id && id <= ranges[i + 1]!);
    const ids = Array.from({ length: 512 }, (_, id) => id).filter(isIn);
    return this.add(ids.map((id) => this.bytes(Uint8Array.of(255, 0, id >> 8, id & 255))));
  }

  repeat(item: BnfSymbol, min: number, max: number): BnfSymbol {
    const required = Array.from({ length: min }, () => item);
    if (!Number.isFinite(max)) {
      const many = this.add([]);
      this.rules[(many as { rule: number }).rule] = [[], [many, item]];
      return this.add([[...required, many]]);
    }
    let rest: BnfSymbol = this.add([[]]);
    for (let i = min; i < max; i++) rest = this.add([[], [item, rest]]);
    return this.add([[...required, rest]]);
  }
}
