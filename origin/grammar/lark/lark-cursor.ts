import { type GrammarError, syntaxError } from '../grammar-error.ts';

/** A word of Lark's syntax with its place. */
export interface LarkWord {
  readonly kind:
    | 'rule'
    | 'terminal'
    | 'string'
    | 'regex'
    | 'number'
    | 'directive'
    | 'symbol'
    | 'newline'
    | 'reference';
  readonly text: string;
  readonly offset: number;
}

const WORDS: readonly (readonly [LarkWord['kind'] | 'space', RegExp])[] = [
  ['space', /(?:[ \t\f]|\/\/[^\n]*|#[^\n]*|\\\r?\n)+/y],
  ['newline', /(?:\r?\n[ \t\f]*)+/y],
  ['directive', /%[a-z]+/y],
  ['string', /"(?:[^"\\\n]|\\.)*"i?/y],
  ['regex', /\/(?!\/)(?:[^/\\\n]|\\.)+\/[imslux]*/y],
  ['rule', /_?[a-z](?:[_a-z0-9]|-(?!>))*/y],
  ['terminal', /_?[A-Z](?:[_A-Z0-9]|-(?!>))*/y],
  ['reference', /@[A-Za-z0-9_-]+/y],
  ['symbol', /->|\.\.|[()[\]{}|:*+?~!.,&<>=-]/y],
  ['number', /\d+/y],
];

/** Cuts a Lark grammar into words; comments and spaces are left out. The last word is a line end. */
export function larkWords(source: string): LarkWord[] {
  const words: LarkWord[] = [];
  let offset = 0;
  while (offset < source.length) {
    const start = offset;
    for (const [kind, pattern] of WORDS) {
      pattern.lastIndex = offset;
      const text = pattern.exec(source)?.[0];
      if (text === undefined) continue;
      if (kind !== 'space') words.push({ kind, text, offset });
      offset += text.length;
      break;
    }
    if (offset === start) throw syntaxError(source, offset, 'Unexpected character');
  }
  words.push({ kind: 'newline', text: '', offset });
  return withoutContinuedLines(words);
}

/** A line that begins with `|` goes on with the one before. */
function withoutContinuedLines(words: readonly LarkWord[]): LarkWord[] {
  const kept: LarkWord[] = [];
  for (const word of words) {
    if (word.kind === 'symbol' && word.text === '|') {
      while (kept.at(-1)?.kind === 'newline') kept.pop();
    }
    kept.push(word);
  }
  return kept;
}

const MAX_COUNT = 100_000;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', '0': '\0' };

/** Reads the words of a Lark grammar. */
export class LarkCursor {
  readonly #source: string;
  readonly #words: readonly LarkWord[];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.#words = larkWords(source);
  }

  get atEnd(): boolean {
    return this.#at >= this.#words.length;
  }

  get word(): LarkWord | undefined {
    return this.#words[this.#at];
  }

  error(message: string): GrammarError {
    return syntaxError(this.#source, this.word?.offset ?? this.#source.length, message);
  }

  takeKind(kind: LarkWord['kind']): LarkWord | null {
    const word = this.word;
    if (word?.kind !== kind) return null;
    this.#at++;
    return word;
  }

  isSymbol(text: string): boolean {
    return this.word?.kind === 'symbol' && this.word.text === text;
  }

  takeSymbol(text: string): boolean {
    if (!this.isSymbol(text)) return false;
    this.#at++;
    return true;
  }

  expect(text: string): void {
    if (!this.takeSymbol(text)) throw this.error(`Expected "${text}"`);
  }

  /** At `{` with a count behind it, not with what a template is given. */
  get atCounts(): boolean {
    const next = this.#words[this.#at + 1];
    return this.isSymbol('{') && (next?.kind === 'number' || next?.text === ',');
  }

  number(): number {
    this.takeSymbol('-');
    const word = this.takeKind('number');
    if (!word) throw this.error('Expected a number');
    if (Number(word.text) > MAX_COUNT) throw this.error(`More than ${MAX_COUNT} repetitions`);
    return Number(word.text);
  }

  /** A quoted string with its escapes replaced. */
  string(): { value: string; ignoreCase: boolean } {
    const word = this.takeKind('string');
    if (!word) throw this.error('Expected a string');
    const ignoreCase = word.text.endsWith('i');
    const body = word.text.slice(1, ignoreCase ? -2 : -1);
    const value = body.replace(
      /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gsu,
      (...found) => {
        const [, x, u, U, char] = found as (string | undefined)[];
        const code = x ?? u ?? U;
        if (code === undefined) return ESCAPES[char!] ?? char!;
        const value = Number.parseInt(code, 16);
        if (value > 0x10ffff) throw syntaxError(this.#source, word.offset, 'Not a Unicode character');
        return String.fromCodePoint(value);
      },
    );
    if (!value.isWellFormed()) throw syntaxError(this.#source, word.offset, 'Lone surrogate');
    return { value, ignoreCase };
  }

  /** The JSON object that follows a directive such as `%json`. */
  jsonAfterDirective(): unknown {
    this.takeKind('directive');
    while (this.takeKind('newline'));
    const start = this.word?.offset ?? this.#source.length;
    if (!this.isSymbol('{')) throw this.error('Expected a JSON object');
    let open = 0;
    do {
      if (this.atEnd) throw syntaxError(this.#source, start, 'The JSON object is not closed');
      if (this.isSymbol('{')) open++;
      if (this.isSymbol('}')) open--;
      this.#at++;
    } while (open > 0);
    const last = this.#words[this.#at - 1]!;
    try {
      return JSON.parse(this.#source.slice(start, last.offset + 1));
    } catch {
      throw syntaxError(this.#source, start, 'The JSON object is malformed');
    }
  }
}
