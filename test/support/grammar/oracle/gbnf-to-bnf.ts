import { type Bnf, BnfBuilder, type BnfSymbol } from './bnf.ts';

/** An independent GBNF parser: a tokenizer and recursive descent. Expects a valid grammar. */
export function bnfOfGbnf(source: string): Bnf {
  return new Reader(tokenize(source)).read();
}

const WORD =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[(?:[^\]\\]|\\.)*\]|[\w-]+[ \t]*::=|[\w-]+|\{[^}]*\}|[()|*+?.]/gsu;

function tokenize(source: string): string[] {
  // A comment runs to the end of its line, but `#` inside a literal is a character.
  const bare = source.replace(/("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[(?:[^\]\\]|\\.)*\])|#[^\n]*/gs, '$1');
  return bare.match(WORD) ?? [];
}

class Reader {
  readonly #words: string[];
  readonly #builder = new BnfBuilder();
  readonly #names = new Map<string, number>();
  #at = 0;

  constructor(words: string[]) {
    this.#words = words;
  }

  read(): Bnf {
    while (this.#at < this.#words.length) {
      const name = this.#words[this.#at++]!.replace(/\s*::=$/, '');
      this.#builder.rules[this.#rule(name)] = this.#alternatives();
    }
    return { rules: this.#builder.rules, root: this.#rule('root') };
  }

  #rule(name: string): number {
    let rule = this.#names.get(name);
    if (rule === undefined) {
      rule = this.#builder.rules.push([]) - 1;
      this.#names.set(name, rule);
    }
    return rule;
  }

  #alternatives(): BnfSymbol[][] {
    const out = [this.#sequence()];
    while (this.#words[this.#at] === '|') {
      this.#at++;
      out.push(this.#sequence());
    }
    return out;
  }

  #sequence(): BnfSymbol[] {
    const out: BnfSymbol[] = [];
    for (;;) {
      const word = this.#words[this.#at];
      if (word === undefined || word === '|' || word === ')' || word.endsWith('::=')) return out;
      this.#at++;
      out.push(this.#quantified(this.#item(word)));
    }
  }

  #item(word: string): BnfSymbol {
    if (word === '(') {
      const alternatives = this.#alternatives();
      this.#at++;
      return this.#builder.add(alternatives);
    }
    if (word === '.') return { kind: 'char', ranges: [[0, 0x10ffff]] };
    if (word[0] === '"' || word[0] === "'") {
      const text = String.fromCodePoint(...decodeEscapes(word.slice(1, -1)));
      return this.#builder.add([this.#builder.bytes(Buffer.from(text))]);
    }
    if (word[0] === '[') return { kind: 'char', ranges: classRanges(word.slice(1, -1)) };
    return { kind: 'rule', rule: this.#rule(word) };
  }

  #quantified(item: BnfSymbol): BnfSymbol {
    let out = item;
    for (;;) {
      const word = this.#words[this.#at];
      if (word === '*') out = this.#builder.repeat(out, 0, Number.POSITIVE_INFINITY);
      else if (word === '+') out = this.#builder.repeat(out, 1, Number.POSITIVE_INFINITY);
      else if (word === '?') out = this.#builder.repeat(out, 0, 1);
      else if (word?.[0] === '{') {
        const [low, high] = word.slice(1, -1).split(',');
        const min = Number(low);
        out = this.#builder.repeat(
          out,
          min,
          high === undefined ? min : high.trim() === '' ? Number.POSITIVE_INFINITY : Number(high),
        );
      } else return out;
      this.#at++;
    }
  }
}

function decodeEscapes(body: string): number[] {
  const out: number[] = [];
  for (const match of body.matchAll(/\\x(..)|\\u(.{4})|\\U(.{8})|\\(.)|(.)/gsu)) {
    const hex = match[1] ?? match[2] ?? match[3];
    if (hex !== undefined) out.push(Number.parseInt(hex, 16));
    else if (match[4] !== undefined)
      out.push(({ n: 10, r: 13, t: 9 } as Record<string, number>)[match[4]] ?? match[4].codePointAt(0)!);
    else out.push(match[5]!.codePointAt(0)!);
  }
  return out;
}

function classRanges(body: string): [number, number][] {
  const negated = body[0] === '^';
  const marked = (negated ? body.slice(1) : body).replace(
    /(\\x..|\\u.{4}|\\U.{8}|\\.|[^\\])-(?!$)/gsu,
    '$1\u{F0000}',
  );
  const points = decodeEscapes(marked);
  const ranges: [number, number][] = [];
  for (let i = 0; i < points.length; i++) {
    if (points[i + 1] === 0xf0000) {
      ranges.push([points[i]!, points[i + 2]!]);
      i += 2;
    } else ranges.push([points[i]!, points[i]!]);
  }
  if (!negated) return ranges;
  const out: [number, number][] = [];
  let next = 0;
  for (const [lo, hi] of ranges.sort((a, b) => a[0] - b[0])) {
    if (next < lo) out.push([next, lo - 1]);
    next = Math.max(next, hi + 1);
  }
  out.push([next, 0x10ffff]);
  return out.filter(([lo, hi]) => lo <= hi);
}
