import { parseExactJson } from '../rules/exact-json.ts';
import { type GrammarError, syntaxError } from '../rules/grammar-error.ts';

/** A token of Lark's syntax. */
interface LarkToken {
  readonly kind:
    | 'rule'
    | 'terminal'
    | 'string'
    | 'regex'
    | 'number'
    | 'directive'
    | 'symbol'
    | 'newline'
    | 'reference'
    | 'special';
  readonly text: string;
  readonly offset: number;
}

const TOKEN_PATTERNS: readonly (readonly [LarkToken['kind'] | 'space', RegExp])[] = [
  ['space', /(?:[ \t\f]|\/\/[^\n]*|#[^\n]*|\\\r?\n)+/y],
  ['newline', /(?:\r?\n[ \t\f]*)+/y],
  ['directive', /%[a-z]+/y],
  ['string', /"(?:[^"\\\n]|\\.)*"i?/y],
  ['regex', /\/(?!\/)(?:[^/\\\n]|\\.)+\/[a-z]*/y],
  ['special', /<(?:\[[^\]\n]*\]|[^<>\s]+)>/y],
  ['rule', /_?[a-z](?:[_a-z0-9]|-(?!>))*/y],
  ['terminal', /_?[A-Z](?:[_A-Z0-9]|-(?!>))*/y],
  ['reference', /@[A-Za-z0-9_-]+/y],
  ['symbol', /->|\.\.|::|[()[\]{}|:*+?~!.,&<>=_-]/y],
  ['number', /\d+/y],
];

/** Splits a Lark grammar into tokens without comments and spaces. The last token is a newline. */
function tokenizeLark(source: string): LarkToken[] {
  const tokens: LarkToken[] = [];
  let offset = 0;
  while (offset < source.length) {
    const start = offset;
    for (const [kind, pattern] of TOKEN_PATTERNS) {
      pattern.lastIndex = offset;
      const text = pattern.exec(source)?.[0];
      if (text === undefined) continue;
      if (kind !== 'space') tokens.push({ kind, text, offset });
      offset += text.length;
      break;
    }
    if (offset === start) throw syntaxError(source, offset, 'Unexpected character');
  }
  tokens.push({ kind: 'newline', text: '', offset });
  return joinContinuedLines(tokens);
}

/** Removes newlines before a line that begins with `|` or `&`, which continues the previous line. */
function joinContinuedLines(tokens: readonly LarkToken[]): LarkToken[] {
  const kept: LarkToken[] = [];
  for (const token of tokens) {
    if (token.kind === 'symbol' && (token.text === '|' || token.text === '&')) {
      while (kept.at(-1)?.kind === 'newline') kept.pop();
    }
    kept.push(token);
  }
  return kept;
}

const MAX_COUNT = 100_000;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v', '0': '\0' };

/** A read position in the tokens of a Lark grammar. */
export class LarkCursor {
  readonly #source: string;
  readonly #tokens: readonly LarkToken[];
  #index = 0;

  constructor(source: string) {
    this.#source = source;
    this.#tokens = tokenizeLark(source);
  }

  get atEnd(): boolean {
    return this.#index >= this.#tokens.length;
  }

  get token(): LarkToken | undefined {
    return this.#tokens[this.#index];
  }

  /** Whether the token after the next one is a number. */
  get precedesNumber(): boolean {
    return this.#tokens[this.#index + 1]?.kind === 'number';
  }

  error(message: string): GrammarError {
    return syntaxError(this.#source, this.token?.offset ?? this.#source.length, message);
  }

  takeKind(kind: LarkToken['kind']): LarkToken | null {
    const token = this.token;
    if (token?.kind !== kind) return null;
    this.#index++;
    return token;
  }

  isSymbol(text: string): boolean {
    return this.token?.kind === 'symbol' && this.token.text === text;
  }

  takeSymbol(text: string): boolean {
    if (!this.isSymbol(text)) return false;
    this.#index++;
    return true;
  }

  expect(text: string): void {
    if (!this.takeSymbol(text)) throw this.error(`Expected "${text}"`);
  }

  /** Whether a repetition count in braces follows, as opposed to template arguments. */
  get atCounts(): boolean {
    const next = this.#tokens[this.#index + 1];
    return this.isSymbol('{') && (next?.kind === 'number' || next?.text === ',');
  }

  number(): number {
    const token = this.takeKind('number');
    if (!token) throw this.error('Expected a number');
    if (Number(token.text) > MAX_COUNT) throw this.error(`More than ${MAX_COUNT} repetitions`);
    return Number(token.text);
  }

  /** Takes `=` and a number such as 0.7. */
  decimal(): void {
    this.expect('=');
    this.number();
    if (this.takeSymbol('.')) this.number();
  }

  /** Takes a quoted string and decodes its escapes. */
  string(): { value: string; ignoreCase: boolean } {
    const token = this.takeKind('string');
    if (!token) throw this.error('Expected a string');
    const ignoreCase = token.text.endsWith('i');
    const body = token.text.slice(1, ignoreCase ? -2 : -1);
    const value = body.replace(
      /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gsu,
      (...groups) => {
        const [, x, u, U, char] = groups as (string | undefined)[];
        const code = x ?? u ?? U;
        if (code === undefined && /[xuU]/.test(char!))
          throw syntaxError(this.#source, token.offset, `The escape "\\${char}" needs hexadecimal digits`);
        if (code === undefined) return ESCAPES[char!] ?? char!;
        const value = Number.parseInt(code, 16);
        if (value > 0x10ffff)
          throw syntaxError(this.#source, token.offset, 'The escape is not a Unicode scalar value');
        return String.fromCodePoint(value);
      },
    );
    if (!value.isWellFormed())
      throw syntaxError(this.#source, token.offset, 'A lone surrogate cannot be encoded');
    return { value, ignoreCase };
  }

  /** Takes a directive such as `%json` and the JSON object that follows. */
  jsonAfterDirective(): object {
    const [start, end] = this.#bracesAfterDirective();
    try {
      return parseExactJson(this.#source.slice(start, end)) as object;
    } catch {
      throw syntaxError(this.#source, start, 'The JSON object is malformed');
    }
  }

  /** Takes `%lark {…}`. Returns the grammar with spaces before it, so that positions in errors are right. */
  grammarAfterDirective(): string {
    const [start, end] = this.#bracesAfterDirective();
    return this.#source.slice(0, start + 1).replace(/[^\n]/g, ' ') + this.#source.slice(start + 1, end - 1);
  }

  #bracesAfterDirective(): [start: number, end: number] {
    const directive = this.takeKind('directive')!;
    while (this.takeKind('newline'));
    const start = this.token?.offset ?? this.#source.length;
    if (!this.isSymbol('{')) throw this.error(`Expected "{" after ${directive.text}`);
    let open = 0;
    do {
      if (this.atEnd) throw syntaxError(this.#source, start, 'The brace is not closed');
      if (this.isSymbol('{')) open++;
      if (this.isSymbol('}')) open--;
      this.#index++;
    } while (open > 0);
    return [start, this.#tokens[this.#index - 1]!.offset + 1];
  }
}
