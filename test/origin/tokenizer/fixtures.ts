import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { newDirectory } from '../../support/new-directory.ts';

/** Small tokenizers in the two spellings that exist, written to a directory as a model would bring them. */

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

export function modelDirectory(files: Readonly<Record<string, unknown>>): string {
  const directory = newDirectory();
  for (const [name, content] of Object.entries(files)) {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeFileSync(path.join(directory, name), text);
  }
  return directory;
}

/** GPT-2's byte characters, from the published rule: printable Latin-1 first, the rest from U+0100 on. */
function byteCharacters(): string[] {
  const kept = (b: number) => (b > 32 && b < 127) || (b > 160 && b !== 173);
  let extra = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCharCode(kept(b) ? b : extra++));
}

const BYTE_MERGES = ['h e', 'l l', 'he ll', 'hell o', 'Ġ w', 'o r', 'Ġw or', 'l d', 'Ã ©', 'ð Ł', '< |'];

/** 256 byte tokens at 4…259, merges after them, `added` wherever their ids say. */
export function byteLevelTokenizer(added: readonly AddedToken[], overrides: object = {}): object {
  const texts = [...byteCharacters(), ...BYTE_MERGES.map((merge) => merge.replace(' ', ''))];
  return {
    added_tokens: added.map((token) => ({ ...token, normalized: false, lstrip: false, rstrip: false })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel' },
    model: {
      type: 'BPE',
      vocab: Object.fromEntries(texts.map((text, index) => [text, index + 4])),
      merges: BYTE_MERGES,
    },
    ...overrides,
  };
}

export const FIM_TOKENS: readonly AddedToken[] = [
  { id: 0, content: '<|endoftext|>', special: true },
  { id: 1, content: '<|fim_prefix|>', special: false },
  { id: 2, content: '<|fim_suffix|>', special: false },
  { id: 3, content: '<|fim_middle|>', special: false },
];

const SP_MERGES = ['▁ h', 'e l', '▁h el', 'l o', '▁hel lo', '▁ w', '< s', '<s >'];
const SP_CHARACTERS = ['▁', 'h', 'e', 'l', 'o', 'w', 'r', 'd', '<', 's', '>', '/'];

const BYTE_PIECES = Array.from(
  { length: 256 },
  (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`,
);

/** Llama's layout: `<unk>`, `<s>`, `</s>`, 256 byte tokens, then pieces; BOS by template. */
export function sentencePieceTokenizer(extra: readonly AddedToken[] = []): object {
  const pieces = [
    '<unk>',
    '<s>',
    '</s>',
    ...BYTE_PIECES,
    ...SP_CHARACTERS,
    ...SP_MERGES.map((m) => m.replace(' ', '')),
  ];
  const control = ['<unk>', '<s>', '</s>'].map((content, id) => ({ id, content, special: true }));
  return {
    added_tokens: [...control, ...extra].map((token) => ({ ...token, normalized: false })),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [],
      special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
    },
    decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] },
    model: {
      type: 'BPE',
      vocab: Object.fromEntries([...new Set(pieces)].map((text, id) => [text, id])),
      merges: SP_MERGES,
      byte_fallback: true,
      unk_token: '<unk>',
      fuse_unk: true,
    },
  };
}

/** A Unigram model as SentencePiece makes them without byte fallback: unknown characters become `<unk>`. */
export function unigramTokenizer(overrides: object = {}): object {
  const pieces = [...'▁helowrd<s>/'].map((text): [string, number] => [text, -8]);
  const control = ['<unk>', '<s>', '</s>'];
  const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' };
  return {
    added_tokens: control.map((content, id) => ({ id, content, special: true, normalized: false })),
    normalizer: null,
    pre_tokenizer: metaspace,
    post_processor: null,
    decoder: metaspace,
    model: {
      type: 'Unigram',
      unk_id: 0,
      vocab: [...control.map((text) => [text, 0]), ...pieces, ['▁hello', -5], ['▁wor', -6], ['ld', -6]],
      ...overrides,
    },
  };
}

/** The same with byte fallback, in LLM-jp's form. */
export function unigramByteTokenizer(): object {
  const { model, ...others } = unigramTokenizer() as { model: { vocab: readonly [string, number][] } };
  const vocab = [...model.vocab, ...BYTE_PIECES.map((text): [string, number] => [text, 0])];
  const replace = (Regex: string) => ({ type: 'Replace', pattern: { Regex }, content: '▁' });
  return {
    ...others,
    normalizer: { type: 'Sequence', normalizers: [replace('(?<!\\n)^'), replace(' ')] },
    pre_tokenizer: null,
    model: { ...model, vocab, byte_fallback: true },
  };
}

export const sentencePieceDirectory = (config: object = {}, extra: readonly AddedToken[] = []): string =>
  modelDirectory({
    'tokenizer.json': sentencePieceTokenizer(extra),
    'tokenizer_config.json': { bos_token: '<s>', eos_token: { content: '</s>' }, ...config },
  });

export const byteLevelDirectory = (config: object = {}): string =>
  modelDirectory({
    'tokenizer.json': byteLevelTokenizer(FIM_TOKENS),
    'tokenizer_config.json': { eos_token: '<|endoftext|>', ...config },
  });

/** Texts that break tokenizers: control characters, broken surrogates, joiners, markers, all white space. */
export const HOSTILE: readonly string[] = [
  'hello world',
  ' leading and trailing ',
  '   \t\r\n\n\u0085\u00a0\u2028\ufeff',
  '\ufeffbyte order mark first',
  '\0\u0001\u001f\u007f',
  'é è e\u0301 ﬁ ｆｕｌｌ',
  '👩‍👩‍👧‍👦🏳️‍🌈🇩🇪',
  '漢字かなカナ한글',
  'עברית العربية \u202eabc',
  '𝔘𝔫𝔦𝔠𝔬𝔡𝔢',
  "don't I'LL we'Ve",
  '<|endoftext|> <|fim_prefix|>',
  '<s></s><unk><0x41>',
  '▁▁ metaspace ▁',
  'Ġ Ċ Ã© ð',
  'a'.repeat(2000),
  ' '.repeat(777),
  '\n'.repeat(333),
  '1234567890 ½ ² Ⅷ ٣',
  '}{][)(*&^%$#@!~`|\\"\'',
  'constructor __proto__ toString hasOwnProperty',
  '\ud83d half a pair \ude00',
];
