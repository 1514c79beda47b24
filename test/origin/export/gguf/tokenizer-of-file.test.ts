import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { MetadataValue } from '../../../../origin/export/gguf/gguf-header.ts';
import { tokenizerFilesOf } from '../../../../origin/export/gguf/tokenizer-of-file.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../../origin/tokenizer/tokenizer.ts';
import { temporaryDirectory } from '../../model/synthetic-runner.ts';

interface Vocabulary {
  readonly model: string;
  readonly pre: string;
  readonly tokens: readonly string[];
  readonly types: readonly number[];
  readonly merges?: readonly string[];
  readonly scores?: readonly number[];
  readonly bos: number;
  readonly eos: number;
  readonly unknown: number | null;
  /** Of each text, as llama.cpp encodes it. */
  readonly ids: readonly (readonly number[])[];
}

/**
 * Parts of published vocabularies for the texts, with tokens of llama.cpp 0.5 (node-llama-cpp 3.22.1). That
 * of Gemma 4 was trained on the texts, with tokens of transformers' GemmaTokenizer.
 */
const [head = '', ...lines] = readFileSync(new URL('tokenizers.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');
const { texts } = JSON.parse(head) as { readonly texts: readonly string[] };
const vocabularies: Readonly<Record<string, Vocabulary>> = Object.fromEntries(
  lines
    .map((line) => JSON.parse(line) as Vocabulary & { readonly name: string })
    .map((vocabulary) => [vocabulary.name, vocabulary]),
);

function metadataOf(vocabulary: Vocabulary): Map<string, MetadataValue> {
  const { model, pre, tokens, types, merges, scores, bos, eos, unknown } = vocabulary;
  return new Map<string, MetadataValue>([
    ['tokenizer.ggml.model', model],
    ['tokenizer.ggml.pre', pre],
    ['tokenizer.ggml.tokens', tokens],
    ['tokenizer.ggml.token_type', Int32Array.from(types)],
    ['tokenizer.ggml.bos_token_id', bos],
    ['tokenizer.ggml.eos_token_id', eos],
    ...(merges ? [['tokenizer.ggml.merges', merges] as const] : []),
    ...(scores ? [['tokenizer.ggml.scores', Float32Array.from(scores)] as const] : []),
    ...(unknown === null ? [] : [['tokenizer.ggml.unknown_token_id', unknown] as const]),
  ]);
}

function tokenizerOf(metadata: ReadonlyMap<string, MetadataValue>): Tokenizer {
  const directory = temporaryDirectory();
  for (const file of tokenizerFilesOf(metadata).files) {
    if ('text' in file) writeFileSync(join(directory, file.name), file.text);
  }
  return Tokenizer.of(textsOf(directory));
}

describe.each(Object.entries(vocabularies))('%s', (_, vocabulary) => {
  test('encodes as its reference and decodes to the same text', () => {
    const tokenizer = tokenizerOf(metadataOf(vocabulary));
    for (const [index, text] of texts.entries()) {
      const ids = tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true });
      expect(ids, JSON.stringify(text)).toEqual(vocabulary.ids[index]);
      // SentencePiece spells spaces as this character, so it comes back as a space.
      const isSentencePiece = vocabulary.model !== 'gpt2';
      const spelled = isSentencePiece ? text.replaceAll('\u2581', ' ') : text;
      expect(tokenizer.decode(ids, { skipSpecialTokens: false })).toBe(spelled);
    }
  });
});

/** Of the vocabulary `llama-spm` with other scores, the tokens of llama.cpp 0.5 (node-llama-cpp 3.22.1). */
const RESCORED: readonly [string, (id: number) => number, Readonly<Record<string, readonly number[]>>][] = [
  [
    'one score for all',
    () => -1000,
    {
      'The quick brown fox jumps over the lazy dog': [
        466, 87, 288, 466, 522, 479, 470, 478, 488, 466, 484, 473, 472, 487, 471, 466, 482, 472, 504, 466,
        109, 479, 480, 481, 474, 466, 472, 121, 261, 272, 466, 475, 469, 508, 485, 298, 106,
      ],
      'internationalization of the other things': [
        466, 262, 290, 473, 471, 469, 468, 314, 471, 469, 475, 470, 508, 469, 468, 314, 471, 466, 339, 272,
        466, 472, 359, 473, 266, 262, 106, 474,
      ],
      ' the  then there': [259, 359, 259, 359, 471, 272, 473, 467],
      aaaaaaa: [465, 463, 469],
      '     x': [310, 504],
    },
  ],
  [
    'three scores',
    (id) => -(id % 3),
    {
      'The quick brown fox jumps over the lazy dog': [
        466, 87, 288, 466, 522, 479, 470, 478, 488, 466, 484, 473, 472, 487, 471, 466, 482, 472, 504, 466,
        109, 479, 480, 481, 474, 466, 472, 121, 261, 272, 466, 475, 469, 508, 485, 298, 106,
      ],
      'internationalization of the other things': [
        466, 262, 468, 261, 471, 469, 468, 470, 265, 469, 475, 470, 508, 469, 468, 470, 265, 466, 339, 272,
        466, 472, 291, 261, 266, 262, 106, 474,
      ],
      ' the  then there': [259, 359, 259, 291, 264, 266, 261, 467],
      aaaaaaa: [465, 463, 469],
      '     x': [310, 504],
    },
  ],
];

test.each(RESCORED)('merges the leftmost pair of equal scores, as llama.cpp: %s', (_, scoreOf, expected) => {
  const vocabulary = vocabularies['llama-spm']!;
  const tokenizer = tokenizerOf(
    metadataOf({ ...vocabulary, scores: vocabulary.tokens.map((_, id) => scoreOf(id)) }),
  );
  for (const [text, ids] of Object.entries(expected)) {
    for (const parseSpecial of [true, false])
      expect(tokenizer.encode(text, { addSpecialTokens: false, parseSpecial }), text).toEqual(ids);
  }
});

describe('tokens around a text', () => {
  const { 'llama-spm': sentencePiece, 'gpt-2': gpt2, 'llama-bpe': llama3 } = vocabularies;
  const prefix = (vocabulary: Vocabulary, ...more: [string, MetadataValue][]) =>
    tokenizerOf(new Map([...metadataOf(vocabulary), ...more])).prefixIds;

  test('BOS comes first where llama.cpp puts it', () => {
    expect(prefix(sentencePiece!)).toEqual([sentencePiece!.bos]);
    expect(prefix(llama3!)).toEqual([llama3!.bos]);
    expect(prefix(gpt2!)).toEqual([]);
  });

  test('add_bos_token decides', () => {
    expect(prefix(sentencePiece!, ['tokenizer.ggml.add_bos_token', false])).toEqual([]);
    expect(prefix(gpt2!, ['tokenizer.ggml.add_bos_token', true])).toEqual([gpt2!.bos]);
  });

  test('a text ends at EOS or EOT', () => {
    const metadata = new Map([...metadataOf(gpt2!), ['tokenizer.ggml.eot_token_id', 3] as const]);
    expect(tokenizerFilesOf(metadata).endIds).toEqual([gpt2!.eos, 3]);
  });

  test('add_space_prefix decides about the first space', () => {
    const plain = tokenizerOf(
      new Map([...metadataOf(sentencePiece!), ['tokenizer.ggml.add_space_prefix', false] as const]),
    );
    const [first] = plain.encode('a', { addSpecialTokens: false, parseSpecial: false });
    expect(plain.spelling(first!)).toBe('a');
    expect(plain.addsLeadingSpace).toBe(false);
  });
});

test.each<[string, [string, MetadataValue], string]>([
  ['pre-tokenizer', ['tokenizer.ggml.pre', 'kimi-k2'], 'key "tokenizer.ggml.pre" is "kimi-k2"; known'],
  ['kind of vocabulary', ['tokenizer.ggml.model', 'rwkv'], '"tokenizer.ggml.model" is "rwkv"; supported'],
  ['list of types', ['tokenizer.ggml.token_type', Int32Array.of(1)], '"tokenizer.ggml.token_type" is not a'],
  ['list of merges', ['tokenizer.ggml.merges', 'a b'], '"tokenizer.ggml.merges" is no list of texts'],
])('refuses an unknown %s by name', (_, [key, value], message) => {
  const metadata = new Map([...metadataOf(vocabularies['gpt-2']!), [key, value] as const]);
  expect(() => tokenizerFilesOf(metadata)).toThrow(message);
});
