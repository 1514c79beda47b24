import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MARKERS } from '../../../origin/infill/families.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { bytesOf } from '../../../origin/tokenizer/token-bytes.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { runs } from '../../support/random.ts';
import {
  byteLevelDirectory,
  byteLevelTokenizer,
  FIM_TOKENS,
  HOSTILE,
  modelDirectory,
  sentencePieceDirectory,
  sentencePieceTokenizer,
  unigramByteTokenizer,
  unigramTokenizer,
} from './fixtures.ts';

const BUILT_IN = 'origin/models/continuo-mini';
const directories = {
  'byte-level': byteLevelDirectory(),
  SentencePiece: sentencePieceDirectory(),
  'the built-in model': BUILT_IN,
};
const AS_TEXT = { addSpecialTokens: false, parseSpecial: false };
const AS_PROMPT = { addSpecialTokens: true, parseSpecial: true };
const bytes = (text: string) => new TextEncoder().encode(text.toWellFormed());

function bytesOfIds(tokenizer: Tokenizer, ids: readonly number[]): Uint8Array {
  return Uint8Array.from(ids.flatMap((id) => [...bytesOf(tokenizer.tokenBytes, id)]));
}

describe.each(Object.entries(directories))('%s vocabulary', (name, directory) => {
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  const lead = tokenizer.addsLeadingSpace ? ' ' : '';

  /** SentencePiece has one spelling for U+2581 and the space. */
  const asRead = (text: string) => (name === 'SentencePiece' ? text.replaceAll('\u2581', ' ') : text);

  const labelled = HOSTILE.map((text) => [JSON.stringify(text.slice(0, 40)), text] as const);

  test.each(labelled)('the tokens of %s carry exactly its bytes', (_, text) => {
    const ids = tokenizer.encode(text, AS_TEXT);
    expect(bytesOfIds(tokenizer, ids)).toEqual(bytes(lead + asRead(text)));
    expect(tokenizer.decode(ids, { skipSpecialTokens: false })).toBe(asRead(text).toWellFormed());
  });

  test('the tokens of any text carry exactly its bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (text) => {
        const ids = tokenizer.encode(text, AS_TEXT);
        expect(bytesOfIds(tokenizer, ids)).toEqual(bytes(lead + asRead(text)));
      }),
      { numRuns: runs(500) },
    );
  });

  test('parses special tokens in prompts, or leaves them as text on request', () => {
    for (const [text, id] of tokenizer.addedTokens) {
      expect(tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true })).toEqual([id]);
      const plain = tokenizer.encode(text, AS_TEXT);
      expect(plain).not.toContain(id);
      expect(bytesOfIds(tokenizer, plain)).toEqual(bytes(lead + text));
    }
  });

  test('the table is shared memory, one entry per id', () => {
    const { bytes: all, offsets, special, vocabularySize } = tokenizer.tokenBytes;
    for (const array of [all, offsets, special]) expect(array.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(offsets.length).toBe(vocabularySize + 1);
    expect(offsets.at(-1)).toBe(all.length);
  });

  test('ids without a token have no bytes', () => {
    const { tokenBytes } = tokenizer;
    expect(bytesOf(tokenBytes, tokenBytes.vocabularySize).length).toBe(0);
    expect(tokenizer.decode([tokenBytes.vocabularySize + 7], { skipSpecialTokens: false })).toBe('');
    expect(tokenizer.decode([], { skipSpecialTokens: false })).toBe('');
  });

  test('no text is longer than longestSpan allows', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        const ids = tokenizer.encode(text, AS_PROMPT);
        expect(ids.length * tokenizer.longestSpan).toBeGreaterThanOrEqual(text.length);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('begin-of-text', () => {
  const bos = Tokenizer.of(textsOf(sentencePieceDirectory()));

  test('is added as the post-processor says, but never twice', () => {
    const hello = bos.encode('hello', AS_TEXT);
    expect(bos.encode('hello', AS_PROMPT)).toEqual([1, ...hello]);
    expect(bos.encode('<s>hello', AS_PROMPT).filter((id) => id === 1)).toEqual([1]);
    expect(bos.encode('hello', { addSpecialTokens: false, parseSpecial: true })).toEqual(hello);
  });

  test("'always' adds it to every text, also for a tokenizer that adds none by itself", () => {
    const always = { addSpecialTokens: 'always', parseSpecial: true } as const;
    const hello = bos.encode('hello', AS_TEXT);
    expect(bos.encode('hello', always)).toEqual([1, ...hello]);
    expect(bos.encode('<s>hello', always)).toEqual([1, 1, ...hello]);
    const silent = Tokenizer.of(
      textsOf(byteLevelDirectory({ bos_token: '<|endoftext|>', add_bos_token: false })),
    );
    expect(silent.encode('h', AS_PROMPT)[0]).not.toBe(0);
    expect(silent.encode('h', always)).toEqual([0, ...silent.encode('h', AS_TEXT)]);
    const without = Tokenizer.of(textsOf(byteLevelDirectory()));
    expect(without.bosId).toBeNull();
    expect(without.encode('h', always)).toEqual(without.encode('h', AS_TEXT));
  });

  test('makes an empty text valid', () => {
    expect(bos.encode('', AS_PROMPT)).toEqual([1]);
    expect(Tokenizer.of(textsOf(byteLevelDirectory())).encode('', AS_PROMPT)).toEqual([]);
  });

  test("add_bos_token of tokenizer_config.json outranks the post-processor's template", () => {
    const off = Tokenizer.of(textsOf(sentencePieceDirectory({ add_bos_token: false })));
    expect(off.prefixIds).toEqual([]);
    const on = Tokenizer.of(textsOf(byteLevelDirectory({ bos_token: '<|endoftext|>', add_bos_token: true })));
    expect(on.encode('h', AS_PROMPT)[0]).toBe(0);
  });
});

test('a control token that merges could build stays out of plain text, and its bytes stay in', () => {
  const plain = byteLevelTokenizer([]) as { model: { vocab: Record<string, number> } };
  const id = plain.model.vocab.hello ?? -1;
  const files = { 'tokenizer.json': byteLevelTokenizer([{ id, content: 'hello', special: true }]) };
  const tokenizer = Tokenizer.of(textsOf(modelDirectory(files)));
  const ids = tokenizer.encode('hello', AS_TEXT);
  expect(ids).not.toContain(id);
  expect(bytesOfIds(tokenizer, ids)).toEqual(bytes('hello'));
});

test('a character without a token is the unknown token, also where control tokens are text', () => {
  const json = sentencePieceTokenizer() as { model: object; added_tokens: { id: number }[] };
  const [, ...others] = json.added_tokens;
  const unknown = { id: 9, content: '<0x06>', special: true };
  const model = { ...json.model, byte_fallback: false, unk_token: unknown.content };
  const decoder = { type: 'Metaspace', replacement: '▁' };
  const files = { 'tokenizer.json': { ...json, model, decoder, added_tokens: [unknown, ...others] } };
  const tokenizer = Tokenizer.of(textsOf(modelDirectory(files)));
  for (const parseSpecial of [true, false]) {
    expect(tokenizer.encode('éé', { addSpecialTokens: false, parseSpecial }).slice(-1)).toEqual([unknown.id]);
  }
});

describe('a Unigram vocabulary', () => {
  const tokenizer = Tokenizer.of(textsOf(modelDirectory({ 'tokenizer.json': unigramTokenizer() })));
  const spelt = (text: string, parseSpecial: boolean) =>
    tokenizer.encode(text, { addSpecialTokens: false, parseSpecial }).map((id) => tokenizer.spelling(id));

  test('takes the best segmentation', () => {
    expect(spelt('hello world', true)).toEqual(['▁hello', '▁wor', 'ld']);
    expect(tokenizer.decode(tokenizer.encode('hello world', AS_TEXT), { skipSpecialTokens: true })).toBe(
      'hello world',
    );
  });

  test('keeps control tokens out of plain text', () => {
    expect(spelt('<s>', true)).toEqual(['<s>']);
    expect(spelt('<s>', false)).toEqual(['▁', '<', 's', '>']);
    expect(spelt('h\0<s>é', false)).not.toContain('<s>');
    expect(spelt('\ud800<s>', false)).toEqual(['▁', '<unk>', '<', 's', '>']);
  });

  test('says nothing of how long a text of so many tokens may be', () => {
    expect(tokenizer.longestSpan).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a Unigram vocabulary with byte fallback', () => {
  const tokenizer = Tokenizer.of(textsOf(modelDirectory({ 'tokenizer.json': unigramByteTokenizer() })));

  /** Recorded from tokenizers 0.23.3 (Rust). */
  test.each([
    ['hello world', [15, 16, 17]],
    [' hello', [3, 15]],
    ['hello héllo wor\tld', [15, 3, 4, 213, 187, 6, 6, 7, 16, 27, 17]],
    ['hello\n\n👩', [15, 28, 28, 258, 177, 163, 187]],
    ['\0h', [3, 18, 4]],
  ])('has the bytes of characters without a piece: %j', (text, ids) => {
    expect(tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true })).toEqual(ids);
    expect(tokenizer.decode(ids, { skipSpecialTokens: false })).toBe(text);
  });

  test('adds no space before a text that continues another one', () => {
    expect(tokenizer.encode('é', { ...AS_TEXT, continues: true })).toEqual([213, 187]);
  });

  test('reads a text of more pieces than a call can have arguments', () => {
    expect(tokenizer.encode('h'.repeat(130_000), AS_TEXT)).toHaveLength(130_001);
    expect(tokenizer.longestSpan).toBe('▁hello'.length);
  });
});

test('a text may be any length where tokens swallow white space or the normaliser drops characters', () => {
  const spanOf = (overrides: object) => {
    const files = { 'tokenizer.json': byteLevelTokenizer(FIM_TOKENS, overrides) };
    return Tokenizer.of(textsOf(modelDirectory(files))).longestSpan;
  };
  const bytes = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
  const sequence = (first: object) => ({ type: 'Sequence', pretokenizers: [first, bytes] });
  const finite = spanOf({});
  expect(finite).toBe('<|fim_prefix|>'.length);
  expect(spanOf({ normalizer: { type: 'NFC' } })).toBe(2 * finite);
  expect(spanOf({ normalizer: { type: 'StripAccents' } })).toBe(Number.POSITIVE_INFINITY);
  expect(spanOf({ pre_tokenizer: sequence({ type: 'Whitespace' }) })).toBe(Number.POSITIVE_INFINITY);
  const swallowing = FIM_TOKENS.map((token) => ({ ...token, rstrip: true }));
  expect(spanOf({ added_tokens: swallowing })).toBe(Number.POSITIVE_INFINITY);
});

test('the built-in vocabulary tokenises as the Rust tokenizers library does', () => {
  const tokenizer = Tokenizer.of(textsOf(BUILT_IN));
  const rows = JSON.parse(readFileSync(new URL('./reference-ids.json', import.meta.url), 'utf8')) as {
    readonly text: string;
    /** Recorded from tokenizers 0.23.3 (Rust), special tokens read as such. */
    readonly ids: readonly number[];
  }[];
  expect(rows.length).toBeGreaterThan(20);
  for (const { text, ids } of rows) {
    expect(tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true })).toEqual(ids);
  }
});

test('end tokens come from all three configuration files', () => {
  const directory = modelDirectory({
    'tokenizer.json': sentencePieceTokenizer(),
    'tokenizer_config.json': { eos_token: '</s>' },
    'generation_config.json': { eos_token_id: [2, 7] },
    'config.json': { eos_token_id: 5, vocab_size: 400 },
  });
  const tokenizer = Tokenizer.of(textsOf(directory));
  expect(tokenizer.eosIds).toEqual([2, 7]);
  expect(tokenizer.tokenBytes.vocabularySize).toBe(400);
});

test('special tokens are marked and appear as their literal text unless hidden', () => {
  const tokenizer = Tokenizer.of(textsOf(byteLevelDirectory()));
  const ids = tokenizer.encode('h<|endoftext|><|fim_prefix|>', AS_PROMPT);
  expect(tokenizer.decode(ids, { skipSpecialTokens: false })).toBe('h<|endoftext|><|fim_prefix|>');
  expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe('h<|fim_prefix|>');
  expect([...tokenizer.tokenBytes.special.subarray(0, 4)]).toEqual([1, 0, 0, 0]);
});

test('runs of ▁ among the added tokens are the spaces that they stand for', () => {
  const runs = ['▁▁', '▁▁▁▁'].map((content, index) => ({ id: 300 + index, content, special: false }));
  const tokenizer = Tokenizer.of(textsOf(sentencePieceDirectory({}, runs)));
  expect(tokenizer.decode([263, 300, 301, 263], { skipSpecialTokens: true })).toBe(
    `${tokenizer.spelling(263)}      ${tokenizer.spelling(263)}`,
  );
});

test.each(['__proto__', 'constructor', '10'])('the token %s keeps its id and its bytes', (name) => {
  const id = 400;
  const plain = byteLevelTokenizer([]) as { model: { vocab: object; merges: string[] } };
  const vocab = Object.fromEntries([...Object.entries(plain.model.vocab), [name, id]]);
  const json = JSON.stringify(byteLevelTokenizer([], { model: { ...plain.model, vocab } }));
  const tokenizer = Tokenizer.of(textsOf(modelDirectory({ 'tokenizer.json': json })));
  expect(tokenizer.idOf(name)).toBe(id);
  expect(tokenizer.decode([id], { skipSpecialTokens: false })).toBe(name);
  expect(tokenizer.tokenBytes.vocabularySize).toBe(id + 1);
});

describe('a broken directory is one clear line', () => {
  const config = { 'tokenizer_config.json': {} };
  const wordPiece = {
    ...byteLevelTokenizer(FIM_TOKENS),
    pre_tokenizer: { type: 'BertPreTokenizer' },
    decoder: { type: 'WordPiece' },
  };
  test.each([
    ['a missing tokenizer.json', config, /tokenizer\.json is missing/],
    ['bad JSON', { ...config, 'tokenizer.json': '{' }, /tokenizer\.json is not valid JSON/],
    ['a missing model', { ...config, 'tokenizer.json': {} }, /tokenizer\.json: model: /],
    [
      'an unknown model type',
      { ...config, 'tokenizer.json': byteLevelTokenizer([], { model: { type: 'Other', vocab: {} } }) },
      /tokenizer\.json: /,
    ],
    [
      'a vocabulary whose ids are no numbers',
      { ...config, 'tokenizer.json': byteLevelTokenizer([], { model: { type: 'BPE', vocab: { a: 'b' } } }) },
      /tokenizer\.json: model\.vocab: /,
    ],
    [
      'a token that is found as a single word only',
      {
        ...config,
        'tokenizer.json': byteLevelTokenizer([], {
          added_tokens: [{ id: 4, content: 'a', single_word: true }],
        }),
      },
      /added_tokens\.0\.single_word: tokens that are only found as single words are not supported/,
    ],
    [
      'a split that merges what it does not match',
      {
        ...config,
        'tokenizer.json': byteLevelTokenizer([], {
          pre_tokenizer: {
            type: 'Split',
            pattern: { String: ' ' },
            behavior: 'MergedWithNext',
            invert: true,
          },
          decoder: { type: 'ByteLevel' },
        }),
      },
      /pre_tokenizer: Split with invert and the behavior MergedWithNext is not supported/,
    ],
    [
      'an unsupported spelling',
      { ...config, 'tokenizer.json': wordPiece },
      /neither byte-level nor Sentence/,
    ],
  ])('%s', (_, files, message) => {
    const directory = modelDirectory(files);
    expect(() => Tokenizer.of(textsOf(directory))).toThrow(message);
    expect(() => Tokenizer.of(textsOf(directory))).not.toThrow(/\n/);
  });
});
