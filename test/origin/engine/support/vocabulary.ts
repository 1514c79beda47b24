import type { TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';

/** A vocabulary so small that stop strings, broken characters and end tokens occur all the time. */
const TEXTS = ['a', 'b', 'c', 'ab', 'bc', 'abc', ' ', ' a', 'é', '😀', '\n', 'cab'];
const ODD_BYTES = [[0xf0], [0x9f], [0x98], [0x80], [0xff], [0xe2, 0x82], [0xac, 0x61]];
/** More texts, so that the end tokens are not in the first word of a mask. */
const MORE_TEXTS = TEXTS.map((text) => `${text}a`);
const SPECIAL_TEXTS = ['<s>', '</s>', '<pad>'];

export const BOS = TEXTS.length + ODD_BYTES.length + MORE_TEXTS.length;
export const EOS = BOS + 1;
export const VOCABULARY = EOS + 2;

const ALL_BYTES = [
  ...TEXTS.map((text) => [...new TextEncoder().encode(text)]),
  ...ODD_BYTES,
  ...MORE_TEXTS.map((text) => [...new TextEncoder().encode(text)]),
  ...SPECIAL_TEXTS.map((text) => [...new TextEncoder().encode(text)]),
];

export const TOKEN_BYTES: TokenBytes = {
  vocabularySize: VOCABULARY,
  bytes: Uint8Array.from(ALL_BYTES.flat()),
  offsets: Uint32Array.from([
    0,
    ...ALL_BYTES.map((_, id) => ALL_BYTES.slice(0, id + 1).reduce((total, bytes) => total + bytes.length, 0)),
  ]),
  special: Uint8Array.from(ALL_BYTES, (_, id) => (id >= BOS ? 1 : 0)),
};

export const bytesOfToken = (id: number): readonly number[] => ALL_BYTES[id] ?? [];
export const isSpecial = (id: number): boolean => id >= BOS;
