import type { TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';
import { mulberry32 } from '../random.ts';

/** A table of the given texts or byte strings; the first `special` ids are special tokens. */
export function tokenTable(texts: readonly (string | Uint8Array)[], special = 0): TokenBytes {
  const list = texts.map((text) => (typeof text === 'string' ? new TextEncoder().encode(text) : text));
  const offsets = new Uint32Array(list.length + 1);
  list.forEach((bytes, id) => {
    offsets[id + 1] = offsets[id]! + bytes.length;
  });
  const bytes = new Uint8Array(offsets[list.length]!);
  list.forEach((value, id) => {
    bytes.set(value, offsets[id]!);
  });
  const flags = new Uint8Array(list.length).fill(1, 0, special);
  return { vocabularySize: list.length, bytes, offsets, special: flags };
}

const FRAGMENTS = [
  'a',
  'b',
  'ab',
  'abc',
  'ba',
  'aa',
  'aaa',
  'aaaa',
  'bb',
  'name',
  'id',
  'value',
  'x',
  'y',
  'xy',
  'foo',
  'bar',
  'the',
  ' the',
  '0',
  '1',
  '00',
  '10',
  '12',
  '123',
  '100',
  '1000',
  '-1',
  '.5',
  '1.',
  '1.5',
  '0.',
  'e',
  'E',
  'e+',
  'e1',
  '99',
  '42',
  '2024',
  '-01',
  '(',
  ')',
  '()',
  '((',
  '))',
  '1)',
  '(1',
  '+',
  '-',
  '*',
  '/',
  '+1',
  '*(',
  ')+',
  '1+',
  '=',
  '==',
  ' = ',
  ';',
  ';\n',
  'if',
  'if (',
  '"',
  '""',
  '"a',
  'a"',
  '":',
  '": ',
  '",',
  '","',
  '", "',
  '{"',
  '{',
  '}',
  '{}',
  '}}',
  '"}',
  '[',
  ']',
  '[]',
  '["',
  '"]',
  ']]',
  '],[',
  ', ',
  ',',
  ': ',
  ':',
  ' ',
  '  ',
  '    ',
  '\n',
  '\n\n',
  '\n  ',
  '\n    ',
  ' \n',
  '\t',
  '\r\n',
  '\\',
  '\\"',
  '\\n',
  '\\u',
  '\\u00',
  'n"',
  'true',
  'false',
  'null',
  'tru',
  'nul',
  'true,',
  'null}',
  '1,',
  '1}',
  '1]',
  '[1',
  '{"a',
  '{"a"',
  '{"a":',
  '{"a": 1',
  '"a":',
  '"b":',
  '"name": "',
  'é',
  'ü',
  'ß',
  'é"',
  '日',
  '本',
  '日本',
  '語',
  'こ',
  '😀',
  '👍',
  'Ω',
  'я',
  'ñ',
  '\u{10ffff}',
  '\u0000',
  '\u007f',
  '\u0080',
  '<',
  '>',
  '<a>',
  '</',
  '</a>',
  '&',
  '@',
  '.com',
  '.',
  '..',
  '/',
  '//',
  'http',
  '://',
  '192',
  '.1',
  'T1',
  'Z',
  ':00',
  '-0',
  '_',
  '%',
  '#',
  '!',
  '?',
  '~',
];

/** All single bytes, hand-picked fragments, cut UTF-8 sequences, a duplicate, an empty one, two special. */
export function smallVocabulary(): TokenBytes {
  const cut = ['é', '日', '😀'].flatMap((char) => {
    const bytes = new TextEncoder().encode(char);
    return Array.from({ length: bytes.length - 1 }, (_, i) => bytes.slice(0, i + 1));
  });
  const mixed = [
    Uint8Array.of(0x22, 0xc3),
    Uint8Array.of(0xa9, 0x22),
    Uint8Array.of(0x80, 0x80),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0xc0, 0x80),
    Uint8Array.of(0xf4, 0x90, 0x80, 0x80),
  ];
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  return tokenTable(['<s>', '"a"', '', 'a', ...bytes, ...FRAGMENTS, ...cut, ...mixed], 2);
}

const SYLLABLES = [
  'th',
  'er',
  'in',
  'an',
  're',
  'on',
  'at',
  'en',
  'or',
  'is',
  'st',
  'ou',
  'al',
  'ti',
  'ng',
  'le',
  'co',
  'de',
  'pro',
  'com',
  'ing',
  'ion',
  'ed',
  's',
  'y',
  'ver',
  'ka',
  'mo',
  'lu',
  'zi',
];
const ENDINGS = ['', '', '', '', '', ',', '.', '"', '",', '":', "'s", '(', ')', '();', '}', '\n', '_', ' ='];

/**
 * A byte-level vocabulary like those of large models. It has all bytes, words with and without a leading
 * space, numbers, runs of whitespace and punctuation, code, and other scripts.
 */
export function largeVocabulary(size = 152_000): TokenBytes {
  const random = mulberry32(1);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const texts = new Set<string>(FRAGMENTS);
  for (let i = 1; i <= 128; i++) texts.add(' '.repeat(i));
  for (let i = 0; i < 1000; i++) texts.add(String(i));
  for (let i = 1; i < 64; i++) for (const char of '\n\t-=*#_.') texts.add(char.repeat(i));
  for (let c = 0x4e00; c < 0x4e00 + 20_000; c++) texts.add(String.fromCodePoint(c));
  for (let c = 0xa1; c < 0x600; c++) texts.add(String.fromCodePoint(c));
  while (texts.size < size - 257) {
    const count = 1 + Math.floor(random() * 4);
    let word = Array.from({ length: count }, () => pick(SYLLABLES)).join('');
    if (random() < 0.3) word = word[0]!.toUpperCase() + word.slice(1);
    texts.add((random() < 0.5 ? ' ' : '') + word + (random() < 0.25 ? pick(ENDINGS) : ''));
  }
  const bytes = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
  return tokenTable(['<|end|>', ...bytes, ...texts], 1);
}
