import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { CheckpointFile } from '../checkpoint/checkpoint.ts';
import type { MetadataValue } from './gguf-header.ts';
import { PRE_TOKENIZERS } from './pre-tokenizers.ts';

type Metadata = ReadonlyMap<string, MetadataValue>;

/** Values of tokenizer.ggml.token_type. */
const TokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

interface Token {
  readonly id: number;
  readonly text: string;
  readonly type: number;
}

/** What is particular to a kind of vocabulary. */
interface Pipeline {
  readonly normalizer: object | null;
  readonly pre_tokenizer: object | null;
  readonly decoder: object;
  readonly model: object;
  readonly addsBos: boolean;
}

interface FileTokenizer {
  /** tokenizer.json and tokenizer_config.json. */
  readonly files: readonly CheckpointFile[];
  readonly beginId: number | null;
  readonly endIds: readonly number[];
}

/**
 * Makes the tokenizer of a file: byte-level BPE (`gpt2`), or SentencePiece with scores (`llama`) or merges
 * (`gemma4`).
 * @throws ModelError that names a key, or a pre-tokenizer that is unknown
 */
export function tokenizerFilesOf(metadata: Metadata): FileTokenizer {
  const kind = metadata.get('tokenizer.ggml.model');
  const tokens = tokensOf(metadata);
  const isSentencePiece = kind === 'llama' || kind === 'gemma4';
  const pipeline = isSentencePiece ? sentencePiece(metadata, tokens) : byteLevel(metadata, tokens, kind);
  const { addsBos, ...steps } = pipeline;
  const added = tokens.filter(({ type }) => ADDED.has(type));
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added.map(({ id, text, type }) => ({
      id,
      content: text,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: type !== TokenType.userDefined,
    })),
    ...steps,
    post_processor: null,
  };
  const textOf = (id: number | null) => (id === null ? null : (tokens[id]?.text ?? null));
  const special = specialIds(metadata, isSentencePiece);
  const config = {
    bos_token: textOf(special.begin),
    eos_token: textOf(special.end),
    unk_token: textOf(special.unknown),
    pad_token: textOf(special.padding),
    add_bos_token: (metadata.get('tokenizer.ggml.add_bos_token') ?? addsBos) === true,
    add_eos_token: metadata.get('tokenizer.ggml.add_eos_token') === true,
  };
  const endIds = [special.end, special.endOfTurn].filter((id) => id !== null);
  return {
    files: [
      { name: 'tokenizer.json', text: JSON.stringify(tokenizer) },
      { name: 'tokenizer_config.json', text: JSON.stringify(config) },
    ],
    beginId: special.begin,
    endIds: [...new Set(endIds)],
  };
}

/** Tokens that are found in a text before it is split. */
const ADDED: ReadonlySet<number> = new Set([TokenType.control, TokenType.userDefined, TokenType.unknown]);

function tokensOf(metadata: Metadata): Token[] {
  const texts = textsOf(metadata, 'tokenizer.ggml.tokens');
  const types = numbersOf(metadata, 'tokenizer.ggml.token_type', texts.length);
  return texts.map((text, id) => ({ id, text, type: types?.[id] ?? TokenType.normal }));
}

function textsOf(metadata: Metadata, key: string): readonly string[] {
  const value = metadata.get(key);
  if (Array.isArray(value)) return value;
  throw new ModelError(`key "${key}" is ${value === undefined ? 'missing' : 'no list of texts'}`);
}

/** Returns a list with an element for each token, or null if it is absent. */
function numbersOf(metadata: Metadata, key: string, count: number): ArrayLike<number> | null {
  const value = metadata.get(key);
  if (value === undefined) return null;
  if (typeof value === 'object' && ArrayBuffer.isView(value) && value.length === count) return value;
  throw new ModelError(`key "${key}" is not a list of ${count} numbers, one for each token`);
}

function specialIds(metadata: Metadata, isSentencePiece: boolean) {
  const id = (name: string, absent: number | null): number | null => {
    const value = metadata.get(`tokenizer.ggml.${name}_token_id`);
    return typeof value === 'number' ? value : absent;
  };
  return {
    begin: id('bos', isSentencePiece ? 1 : null),
    end: id('eos', isSentencePiece ? 2 : null),
    endOfTurn: id('eot', null),
    unknown: id('unknown', isSentencePiece ? 0 : null),
    padding: id('padding', null),
  };
}

/**
 * Ids by text. The first of equal texts has it. Added tokens are in the vocabulary as well, because other
 * readers of tokenizer.json take their ids from there; unused ones are in no text.
 */
function vocabularyOf(tokens: readonly Token[]): Map<string, number> {
  const ids = new Map<string, number>();
  for (const { id, text, type } of tokens) {
    if (type !== TokenType.unused && !ids.has(text)) ids.set(text, id);
  }
  return ids;
}

const bpe = (vocab: ReadonlyMap<string, number>, merges: readonly unknown[], more: object) => ({
  type: 'BPE',
  dropout: null,
  unk_token: null,
  continuing_subword_prefix: null,
  end_of_word_suffix: null,
  fuse_unk: false,
  byte_fallback: false,
  ignore_merges: false,
  ...more,
  vocab: Object.fromEntries(vocab),
  merges,
});

function byteLevel(metadata: Metadata, tokens: readonly Token[], kind: unknown): Pipeline {
  if (kind !== 'gpt2') {
    throw new ModelError(
      `key "tokenizer.ggml.model" is ${JSON.stringify(kind)}; supported are gpt2, llama and gemma4`,
    );
  }
  const name = metadata.get('tokenizer.ggml.pre');
  const cuts = typeof name === 'string' ? PRE_TOKENIZERS.get(name) : undefined;
  if (cuts === undefined) {
    const fault = name === undefined ? 'is missing: convert the model anew' : `is ${JSON.stringify(name)}`;
    throw new ModelError(
      `key "tokenizer.ggml.pre" ${fault}; known pre-tokenizers are ${[...PRE_TOKENIZERS.keys()].join(', ')}`,
    );
  }
  const merges = textsOf(metadata, 'tokenizer.ggml.merges');
  return {
    normalizer: cuts.composed ? { type: 'NFC' } : null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: cuts.steps },
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
    model: bpe(vocabularyOf(tokens), merges, { ignore_merges: cuts.ignoreMerges ?? false }),
    addsBos: cuts.addsBos ?? false,
  };
}

const SPACE = '\u2581';

/** SentencePiece merges the neighbours with the highest score: BPE with merges ranked by the scores. */
function sentencePiece(metadata: Metadata, tokens: readonly Token[]): Pipeline {
  const hasScores = metadata.get('tokenizer.ggml.model') === 'llama';
  const prefixed = (metadata.get('tokenizer.ggml.add_space_prefix') ?? hasScores) === true;
  const replace = { type: 'Replace', pattern: { String: ' ' }, content: SPACE };
  const prepend = { type: 'Prepend', prepend: SPACE };
  const decoders = [
    { type: 'Replace', pattern: { String: SPACE }, content: ' ' },
    { type: 'ByteFallback' },
    { type: 'Fuse' },
    ...(prefixed ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
  ];
  const unknown = tokens.find(({ type }) => type === TokenType.unknown);
  const { merges, ...ranks } = hasScores
    ? mergesByScore(tokens, scoresOf(metadata, tokens))
    : { merges: textsOf(metadata, 'tokenizer.ggml.merges') };
  return {
    normalizer: { type: 'Sequence', normalizers: prefixed ? [prepend, replace] : [replace] },
    pre_tokenizer: null,
    decoder: { type: 'Sequence', decoders },
    model: bpe(vocabularyOf(tokens), merges, {
      ...ranks,
      unk_token: unknown?.text ?? null,
      fuse_unk: true,
      byte_fallback: true,
    }),
    addsBos: true,
  };
}

function scoresOf(metadata: Metadata, tokens: readonly Token[]): ArrayLike<number> {
  const scores = numbersOf(metadata, 'tokenizer.ggml.scores', tokens.length);
  if (scores !== null) return scores;
  throw new ModelError('key "tokenizer.ggml.scores" is missing');
}

/**
 * All pairs whose whole is a piece, the highest score first. Equal scores have equal ranks, so that the
 * leftmost pair of a text is merged first, as in llama.cpp. A converter without the original vocabulary
 * writes one score for all.
 */
function mergesByScore(tokens: readonly Token[], scores: ArrayLike<number>) {
  const pieces = vocabularyOf(tokens.filter(({ type }) => type === TokenType.normal));
  const candidates: { readonly pair: [string, string]; readonly score: number }[] = [];
  for (const [text, id] of pieces) {
    const characters = Array.from(text);
    let left = '';
    for (const [index, character] of characters.slice(0, -1).entries()) {
      left += character;
      const right = text.slice(left.length);
      // A single character needs no piece of its own to be merged.
      const [isFirst, isLast] = [index === 0, index === characters.length - 2];
      if ((isFirst || pieces.has(left)) && (isLast || pieces.has(right)))
        candidates.push({ pair: [left, right], score: scores[id]! });
    }
  }
  candidates.sort((first, second) => second.score - first.score);
  const merges = candidates.map(({ pair }) => pair);
  let rank = 0;
  const ranks = candidates.map(({ score }, index) => {
    if (index > 0 && score !== candidates[index - 1]!.score) rank += 1;
    return rank;
  });
  return { merges, ranks };
}
