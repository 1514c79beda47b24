import { syntaxError } from '../grammar-error.ts';

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
