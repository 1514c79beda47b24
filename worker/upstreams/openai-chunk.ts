import { unitsOf } from '@continuo/shared/binary-text.ts';
import type { TokenLogprob, TopLogprob } from '@continuo/shared/generation.ts';
import * as z from 'zod';

/** The fields that are read of a chunk of an OpenAI-compatible server's stream. */

const named = z.object({
  token: z.string(),
  bytes: z.array(z.int().min(0).max(255)).nullish(),
  logprob: z.number().nullish(),
});
type Named = z.infer<typeof named>;

/** The legacy layout, or that of chat completions, which llama.cpp's server also uses here. */
const logprobs = z.object({
  tokens: z.array(z.string()).nullish(),
  token_logprobs: z.array(z.number().nullable()).nullish(),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
  content: z.array(named.extend({ top_logprobs: z.array(named).nullish() })).nullish(),
});

/** The ids are marked by `markIds`. vLLM puts the prompt's own token first. */
const promptLogprob = z.object({
  logprob: z.number(),
  rank: z.int().min(1).nullish(),
  decoded_token: z.string().nullish(),
});

const choice = z.object({
  index: z.int().min(0).default(0),
  text: z.string().nullish(),
  logprobs: logprobs.nullish(),
  prompt_logprobs: z.array(z.record(z.string(), promptLogprob).nullable()).nullish(),
  finish_reason: z.string().nullish(),
  stop_reason: z.union([z.string(), z.int()]).nullish(),
});
export type ChunkChoice = z.infer<typeof choice>;

/** Servers leave optional fields out or set them to null. */
export const chunk = z.object({
  choices: z.array(choice).nullish(),
  usage: z
    .object({
      prompt_tokens: z.int().min(0).nullish(),
      completion_tokens: z.int().min(0).nullish(),
      prompt_tokens_details: z.object({ cached_tokens: z.int().min(0).nullish() }).nullish(),
    })
    .nullish(),
});
type Chunk = z.infer<typeof chunk>;

const isAbsent = (value: unknown): boolean => value === undefined || value === null;
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
type Fields = Readonly<Record<string, unknown>> | null;

function isTextChoice(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  const {
    index,
    text,
    finish_reason: reason,
    stop_reason,
    logprobs,
    prompt_logprobs,
  } = (value as Fields) ?? {};
  const isText =
    isCount(index) && typeof text === 'string' && (isAbsent(reason) || typeof reason === 'string');
  return isText && isAbsent(stop_reason) && isAbsent(logprobs) && isAbsent(prompt_logprobs);
}

function isPlainUsage(value: unknown): boolean {
  if (isAbsent(value)) return true;
  if (typeof value !== 'object') return false;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = value as NonNullable<Fields>;
  return isCount(prompt_tokens) && isCount(completion_tokens) && isAbsent(prompt_tokens_details);
}

/** Checks a chunk. Usually it is text: a schema would cost more than its relay. Null if invalid. */
export function chunkOf(value: unknown): Chunk | null {
  if (typeof value === 'object' && value !== null) {
    const { choices, usage } = value as NonNullable<Fields>;
    if (Array.isArray(choices) && choices.every(isTextChoice) && isPlainUsage(usage)) return value as Chunk;
  }
  return chunk.safeParse(value).data ?? null;
}

/** Returns the only choice of a valid chunk that has a text and nothing else; null for any other chunk. */
export function onlyTextOf(value: unknown): { readonly index: number; readonly text: string } | null {
  const { choices, usage } = (value as Fields) ?? {};
  if (!Array.isArray(choices) || choices.length !== 1 || !isTextChoice(choices[0]) || !isAbsent(usage))
    return null;
  const { index, text, finish_reason } = choices[0] as {
    index: number;
    text: string;
    finish_reason: unknown;
  };
  return isAbsent(finish_reason) ? { index, text } : null;
}

export type ChunkUsage = z.infer<typeof chunk>['usage'];

const encoder = new TextEncoder();

/** Returns the bytes of a token's name: its text, or `bytes:\xe2\x82` for a part of a character. */
function bytesOfName(name: string): string {
  if (name.startsWith('bytes:')) {
    return name
      .slice('bytes:'.length)
      .replaceAll(/\\x([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return unitsOf(encoder.encode(name));
}

/** Numbers the tokens of servers that send no ids: equal bytes have equal numbers within one response. */
export class TokenNumbers {
  readonly #numbers = new Map<string, number>();

  of(bytes: string): number {
    const number = this.#numbers.get(bytes) ?? this.#numbers.size;
    this.#numbers.set(bytes, number);
    return number;
  }
}

/** Prefers `bytes`, because a name with `bytes` may be cut at the last whole character. */
const bytesOfToken = ({ token, bytes }: Named): string =>
  bytes ? String.fromCharCode(...bytes) : bytesOfName(token);

export function tokensOf({ logprobs }: ChunkChoice, numbers: TokenNumbers): TokenLogprob[] {
  const token = (bytes: string, logprob: number | null, top: readonly (readonly [string, number])[]) => ({
    id: numbers.of(bytes),
    bytes,
    logprob,
    topLogprobs: top
      .toSorted(([, a], [, b]) => b - a)
      .map(([text, value]): TopLogprob => [numbers.of(text), text, value]),
  });
  const fromChat = (logprobs?.content ?? []).map((named) => {
    const top = (named.top_logprobs ?? []).map(
      (alternative) => [bytesOfToken(alternative), alternative.logprob ?? null] as const,
    );
    return token(bytesOfToken(named), named.logprob ?? null, top.filter(hasLogprob));
  });
  const legacy = (logprobs?.tokens ?? []).map((name, index) => {
    const top = Object.entries(logprobs?.top_logprobs?.[index] ?? {});
    const named = top.map(([text, logprob]) => [bytesOfName(text), logprob] as const);
    return token(bytesOfName(name), logprobs?.token_logprobs?.[index] ?? null, named);
  });
  return [...fromChat, ...legacy];
}

const hasLogprob = (pair: readonly [string, number | null]): pair is readonly [string, number] =>
  pair[1] !== null;

/**
 * Marks the ids of `prompt_logprobs` in the text of a response: as plain numbers, JSON.parse would sort them.
 */
export const markIds = (json: string): string =>
  json.replaceAll(/"(\d+)"(\s*:\s*\{\s*"(?:logprob|rank|decoded_token)")/g, '"#$1"$2');

/** Returns the tokens of a prompt with their logprobs; null if the response has none. */
export function promptTokensOf({ prompt_logprobs: positions }: ChunkChoice): TokenLogprob[] | null {
  if (!positions) return null;
  return positions.map((position): TokenLogprob => {
    const entries = Object.entries(position ?? {}).map(
      ([mark, { logprob, rank, decoded_token: text }], index) => ({
        top: [Number(mark.slice(1)), bytesOfName(text ?? ''), logprob] as TopLogprob,
        rank: rank ?? index + 1,
      }),
    );
    const [chosen] = entries;
    if (chosen === undefined) return { id: 0, bytes: '', logprob: null, topLogprobs: null };
    const [id, bytes, logprob] = chosen.top;
    const ranked = entries.toSorted((left, right) => left.rank - right.rank);
    const topLogprobs = ranked.filter(({ rank }, index) => rank === index + 1).map(({ top }) => top);
    return { id, bytes, logprob, topLogprobs, rank: chosen.rank };
  });
}
