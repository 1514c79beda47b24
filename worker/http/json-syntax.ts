/** Finds where a text stops being JSON. JSON.parse does not report it for every error. */

const SPACE = /[\t\n\r ]*/y;
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Returns the end of the pattern's match at `index`; `index` itself if it does not match. */
function endOf(pattern: RegExp, text: string, index: number): number {
  pattern.lastIndex = index;
  return pattern.test(text) ? pattern.lastIndex : index;
}

interface Token {
  readonly end: number;
  readonly valid: boolean;
}

/** Reads a string that starts at `start`. If it is invalid, `end` is the index of the error. */
function readString(text: string, start: number): Token {
  let index = start + 1;
  while (index < text.length) {
    const character = text[index]!;
    if (character === '"') return { end: index + 1, valid: true };
    if (character < ' ') return { end: index, valid: false };
    const next = character === '\\' ? endOf(ESCAPE, text, index) : index + 1;
    if (next === index) return { end: index, valid: false };
    index = next;
  }
  return { end: index, valid: false };
}

type Expected = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end';

/** Returns the index of the first character that cannot be JSON, or the text's length if it ends early; null if valid. */
export function syntaxErrorIndex(text: string): number | null {
  const open: ('{' | '[')[] = [];
  let expected: Expected = 'value';
  let index = endOf(SPACE, text, 0);
  for (; index < text.length; index = endOf(SPACE, text, index)) {
    const character = text[index]!;
    const container = open.at(-1);
    if (expected === 'comma-or-end' && container === undefined) return index;
    if (
      expected !== 'value' &&
      expected !== 'key' &&
      expected !== 'colon' &&
      character === closing(container)
    ) {
      open.pop();
      expected = 'comma-or-end';
      index += 1;
    } else if (expected === 'comma-or-end' || expected === 'colon') {
      if (character !== (expected === 'colon' ? ':' : ',')) return index;
      expected = expected === 'comma-or-end' && container === '{' ? 'key' : 'value';
      index += 1;
    } else if (character === '"') {
      const { end, valid } = readString(text, index);
      if (!valid) return end;
      expected = expected.startsWith('key') ? 'colon' : 'comma-or-end';
      index = end;
    } else if (expected.startsWith('key')) {
      return index;
    } else if (character === '{' || character === '[') {
      open.push(character);
      expected = character === '{' ? 'key-or-end' : 'value-or-end';
      index += 1;
    } else {
      const end = endOf(SCALAR, text, index);
      if (end === index) return index;
      expected = 'comma-or-end';
      index = end;
    }
  }
  return open.length === 0 && expected === 'comma-or-end' ? null : text.length;
}

const closing = (container: '{' | '[' | undefined): string => (container === '{' ? '}' : ']');

/** Completes "We could not parse the JSON body of your request: …" for a text that JSON.parse rejects. */
export function describeSyntaxError(text: string): string {
  if (text.trim() === '') return 'the body is empty';
  const index = syntaxErrorIndex(text) ?? text.length;
  const lines = text.slice(0, index).split('\n');
  const what = index === text.length ? 'the text ends too early' : 'there is a syntax error';
  return `${what} at line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}
