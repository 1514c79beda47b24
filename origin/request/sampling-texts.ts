import { utf8Of } from '@continuo/shared/binary-text.ts';
import type { SamplingParameters } from '@continuo/shared/sampling.ts';
import type { SeededSampling } from '../engine/messages.ts';
import { CONTINUING, PLAIN } from '../tokenizer/tokenizer.ts';
import type { PromptContext } from './prompt.ts';

type DryBreaker = NonNullable<SeededSampling['dryBreakers']>[number];

type TextContext = Pick<PromptContext, 'model' | 'caller'>;

/** Longer breakers are cut to this many code points, as in llama.cpp. */
const MAX_BREAKER_LENGTH = 40;

const encode = async (text: string, { model, caller }: TextContext): Promise<number[]> =>
  Array.from(await model.encoder.encode(text, CONTINUING, caller));

/** Returns the tokens of bad words, with and without a space before each. White space is a word as well. */
export async function encodeBadWords(words: readonly string[], context: TextContext): Promise<number[][]> {
  const encoded: number[][] = [];
  for (const word of words.map((text) => text.trimStart() || text).filter((text) => text !== '')) {
    for (const text of [word, ` ${word}`]) encoded.push(await encode(text, context));
  }
  return encoded.filter(({ length }) => length > 0);
}

/** Returns the biases of all tokens of the texts, as llama.cpp encodes a text that begins. */
export async function encodeBiases(
  texts: NonNullable<SamplingParameters['logitBiasTexts']>,
  { model, caller }: TextContext,
): Promise<[number, number | null][]> {
  const biases: [number, number | null][] = [];
  for (const [text, bias] of texts) {
    const ids = Array.from(await model.encoder.encode(text, PLAIN, caller));
    for (const id of ids) if (id < model.vocabularySize) biases.push([id, bias]);
  }
  return biases;
}

/** Returns DRY's breakers with their tokens; none if DRY is off. */
export async function encodeBreakers(
  { dryMultiplier, drySequenceBreakers }: SamplingParameters,
  context: TextContext,
): Promise<DryBreaker[]> {
  const breakers: DryBreaker[] = [];
  for (const text of new Set(dryMultiplier === 0 ? [] : drySequenceBreakers)) {
    const { bytes, rests } = splitBreaker(text);
    const tokens: (number[] | null)[] = [];
    for (const rest of rests) tokens.push(rest === null ? null : await encode(rest, context));
    if (bytes.length > 0) breakers.push({ bytes, tokens });
  }
  return breakers;
}

/**
 * Splits a breaker after each of its bytes, from 0 on: a token may end there. What follows is null if the
 * split is within a character. A single byte is not split, because it lies within one token.
 */
export function splitBreaker(text: string): { bytes: Uint8Array; rests: (string | null)[] } {
  const bytes = new TextEncoder().encode([...text].slice(0, MAX_BREAKER_LENGTH).join(''));
  const splits = Array.from(bytes.length === 1 ? [] : bytes.keys());
  const rests = splits.map((at) => ((bytes[at]! & 0xc0) === 0x80 ? null : utf8Of(bytes.subarray(at))));
  return { bytes, rests };
}
