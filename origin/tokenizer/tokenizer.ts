import { BPE, Tokenizer as Pipeline, Unigram } from '@huggingface/tokenizers';
import type { ModelTexts } from '../model/config/model-json.ts';
import { afterGuard, GUARD } from './guard.ts';
import { addsLeadingSpace, leadingSpecials, longestSpan } from './pipeline.ts';
import { withPortableCuts } from './pre-tokenizer.ts';
import { tokenBytesOf } from './read-token-bytes.ts';
import { type TokenBytes, textOf } from './token-bytes.ts';
import { readTokenizerFiles, type TokenizerFiles, type TokenizerJson } from './tokenizer-files.ts';

export interface EncodeOptions {
  /**
   * Put the tokenizer's own special tokens (BOS) before the text, unless the text already starts with BOS.
   * `always`: put them before every text, and BOS if the tokenizer adds none.
   */
  readonly addSpecialTokens: boolean | 'always';
  /** True: parse the text of a special token as that token. False: as ordinary text. */
  readonly parseSpecial: boolean;
  /** True: the text continues another one, so no space is added before it. Default: false. */
  readonly continues?: boolean;
}

/** Encodes only the text itself. */
export const PLAIN: EncodeOptions = { addSpecialTokens: false, parseSpecial: false };
/** Encodes only a text that continues another one. */
export const CONTINUING: EncodeOptions = { ...PLAIN, continues: true };

export interface TokenizerParts {
  readonly files: TokenizerFiles;
  /** Added tokens that are control tokens although they are not flagged as special. */
  readonly markers: ReadonlySet<string>;
}

/** Converts between text and token ids of one model directory. Synchronous: about 1 MB of text per second. */
export class Tokenizer {
  readonly tokenBytes: TokenBytes;
  /** Null if the model has no begin-of-text token. */
  readonly bosId: number | null;
  /** End tokens named by the tokenizer's, the model's and the generation configuration. */
  readonly eosIds: readonly number[];
  /** The token that begins a new document: BOS, or else the end token. Null if the model has neither. */
  readonly startId: number | null;
  /** Tokens put before every text with `addSpecialTokens`; empty for most byte-level models. */
  readonly prefixIds: readonly number[];
  /** Most UTF-16 units of text that one token can represent; Infinity if unknown. */
  readonly longestSpan: number;
  /** True if the first token of a text carries a space that the text does not have. */
  readonly addsLeadingSpace: boolean;
  /** Begin, end and padding tokens and the chat template of tokenizer_config.json. */
  readonly description: TokenizerFiles['config'];
  /** Ids of added tokens, special or not, by text. */
  readonly addedTokens: ReadonlyMap<string, number>;

  /** The constructor's input, so that another thread builds the same even if the files have changed. */
  readonly parts: TokenizerParts;
  readonly #special: Pipeline;
  #plain: Pipeline | null = null;

  /** @throws Error one line naming the file and what is wrong with it */
  static of(texts: ModelTexts, markers: ReadonlySet<string> = new Set()): Tokenizer {
    return new Tokenizer({ files: readTokenizerFiles(texts), markers });
  }

  constructor(parts: TokenizerParts) {
    const { tokenizer, config, generation, model } = parts.files;
    this.parts = parts;
    this.#special = pipelineOf(tokenizer);
    this.description = config;
    this.addedTokens = new Map((tokenizer.added_tokens ?? []).map((token) => [token.content, token.id]));
    this.tokenBytes = tokenBytesOf(tokenizer, model.vocab_size ?? 0);
    this.longestSpan = longestSpan(tokenizer, longestToken(this.tokenBytes));
    this.bosId = this.idOf(config.bos_token) ?? null;
    const eos = this.idOf(config.eos_token);
    const ends = [
      ...(eos === undefined ? [] : [eos]),
      ...(generation.eos_token_id ?? model.eos_token_id ?? []),
    ];
    this.eosIds = [...new Set(ends)];
    this.startId = this.bosId ?? this.eosIds[0] ?? null;
    this.prefixIds = this.#prefix(config.add_bos_token ?? null);
    this.addsLeadingSpace = addsLeadingSpace(tokenizer);
  }

  /** Returns the id of the token with exactly this text. */
  idOf(text: string | null | undefined): number | undefined {
    return typeof text === 'string' ? this.#special.token_to_id(text) : undefined;
  }

  /** Returns a token as the vocabulary spells it; '' for ids without a token. */
  spelling(id: number): string {
    return this.#special.id_to_token(id) ?? '';
  }

  encode(text: string, options: EncodeOptions): number[] {
    const { addSpecialTokens, parseSpecial, continues = false } = options;
    if (continues && this.addsLeadingSpace) {
      const guarded = this.encode(GUARD + text, { ...options, continues: false });
      return afterGuard(guarded, this.tokenBytes) ?? this.encode(text, { ...options, continues: false });
    }
    const pipeline = parseSpecial ? this.#special : this.#withoutControl();
    const ids = text === '' ? [] : pipeline.encode(text.toWellFormed(), { add_special_tokens: false }).ids;
    const startsWithBos = this.bosId !== null && ids[0] === this.bosId;
    if (startsWithBos && addSpecialTokens !== 'always') return ids;
    return [...this.addedIds(addSpecialTokens), ...ids];
  }

  /** Returns the special tokens to put before a text that does not start with BOS. */
  addedIds(add: EncodeOptions['addSpecialTokens']): readonly number[] {
    if (!add) return [];
    const isMissing = add === 'always' && this.prefixIds.length === 0 && this.bosId !== null;
    return isMissing ? [this.bosId] : this.prefixIds;
  }

  /** Returns the text of the ids. Broken characters are U+FFFD; ids outside the vocabulary have no text. */
  decode(ids: readonly number[], { skipSpecialTokens }: { readonly skipSpecialTokens: boolean }): string {
    const text = textOf(this.tokenBytes, ids, skipSpecialTokens);
    return this.addsLeadingSpace && text.startsWith(' ') ? text.slice(1) : text;
  }

  /** Built on first use, because few requests need it and a large vocabulary takes memory. */
  #withoutControl(): Pipeline {
    this.#plain ??= pipelineOf(withoutControlTokens(this.parts.files.tokenizer, this.parts.markers));
    return this.#plain;
  }

  /** Follows add_bos_token of tokenizer_config.json; if absent, the post-processor of tokenizer.json. */
  #prefix(addBos: boolean | null): number[] {
    const fromTemplate = leadingSpecials(this.parts.files.tokenizer).flatMap((text) => this.idOf(text) ?? []);
    if (addBos === null || this.bosId === null) return fromTemplate;
    const others = fromTemplate.filter((id) => id !== this.bosId);
    return addBos ? [this.bosId, ...others] : others;
  }
}

function pipelineOf(tokenizer: TokenizerJson): Pipeline {
  const missing = { normalizer: null, post_processor: null, decoder: null };
  try {
    const pre_tokenizer = tokenizer.pre_tokenizer ? withPortableCuts(tokenizer.pre_tokenizer) : null;
    const json = { ...missing, ...tokenizer, pre_tokenizer, added_tokens: tokenizer.added_tokens ?? [] };
    const pipeline = new Pipeline(json, {});
    const { model } = pipeline;
    if (model instanceof Unigram) replaceEncode(model, tokenizer.model.byte_fallback === true);
    const { ranks } = tokenizer.model;
    if (model instanceof BPE && ranks !== undefined) {
      model.bpe_ranks = new Map(model.merges.map((pair, index) => [JSON.stringify(pair), ranks[index]!]));
    }
    return pipeline;
  } catch (error) {
    throw new Error(`tokenizer.json: ${error instanceof Error ? error.message : 'not supported'}`);
  }
}

/** The library spells bytes for BPE only, and passes all pieces as arguments, too many for long texts. */
function replaceEncode(model: Unigram, fallsBack: boolean): void {
  const isKnown = (piece: string) => model.tokens_to_ids.has(piece);
  const spelled = (piece: string) => {
    if (!fallsBack || isKnown(piece)) return piece;
    const bytes = Array.from(new TextEncoder().encode(piece), byteToken);
    return bytes.every(isKnown) ? bytes : piece;
  };
  model.encode = (texts) => texts.flatMap((text) => model.tokenize(text)).flatMap(spelled);
}

const byteToken = (byte: number): string => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;

function longestToken({ offsets, vocabularySize }: TokenBytes): number {
  let length = 0;
  for (let id = 0; id < vocabularySize; id += 1) length = Math.max(length, offsets[id + 1]! - offsets[id]!);
  return length;
}

/** Half a surrogate pair, which no well-formed text contains. */
const UNREACHABLE = '\ud800';

/**
 * Returns the tokenizer without its control tokens, so that text that spells one stays text. Added tokens
 * that are neither special nor in `markers`, such as runs of spaces, are part of normal text and stay.
 *
 * Control tokens are also hidden in the model, because merges (BPE) or the best segmentation (Unigram) could
 * produce them. The unknown token keeps its id.
 */
function withoutControlTokens(tokenizer: TokenizerJson, markers: ReadonlySet<string>): TokenizerJson {
  const added = tokenizer.added_tokens ?? [];
  const isControl = (token: (typeof added)[number]) => token.special === true || markers.has(token.content);
  const control = new Set(added.filter(isControl).map((token) => token.content));
  const { vocab, merges, ranks, unk_token: unknown } = tokenizer.model;
  const hidden = (text: string) => (control.has(text) ? UNREACHABLE + text : text);
  const merged = (merge: string | [string, string]) =>
    typeof merge === 'string' ? merge.replace(' ', '') : merge.join('');
  const isKept = (merge: string | [string, string]) => !control.has(merged(merge));
  return {
    ...tokenizer,
    added_tokens: added.filter((token) => !isControl(token)),
    model: {
      ...tokenizer.model,
      vocab: Array.isArray(vocab)
        ? vocab.map(([text, score]): [string, number] => [hidden(text), score])
        : Object.fromEntries(Object.entries(vocab).map(([text, id]) => [hidden(text), id])),
      ...(typeof unknown === 'string' ? { unk_token: hidden(unknown) } : {}),
      ...(merges ? { merges: merges.filter(isKept) } : {}),
      ...(merges && ranks ? { ranks: ranks.filter((_, index) => isKept(merges[index]!)) } : {}),
    },
  };
}
