import type { EventOf, Usage } from '@continuo/shared/generation.ts';
import type { ChoiceDelta } from './choice-deltas.ts';
import { logprobsJson } from './openai-logprobs.ts';

/** The members that all chunks of one response share. */
export interface Envelope {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** As the client wrote it. */
  readonly model: string;
  readonly fingerprint: string;
}

/** Returns the JSON of a response object up to its choices. */
export const headJson = ({ id, created, model, fingerprint }: Envelope): string =>
  `{"id":${JSON.stringify(id)},"object":"text_completion","created":${created},"model":${JSON.stringify(model)},` +
  `"system_fingerprint":${JSON.stringify(fingerprint)},"choices":[`;

/** Members after the choices; undefined = absent. */
export interface Trailer {
  readonly usage?: Usage | null;
  readonly timings?: EventOf<'done'>;
}

/** Returns `usage` as the public API names its parts. */
export function usageObject({
  promptTokens,
  cachedTokens,
  cacheUnknown,
  completionTokens,
  limitReached,
}: Usage): Record<string, unknown> {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(!cacheUnknown && { prompt_tokens_details: { cached_tokens: cachedTokens } }),
    ...(limitReached !== undefined && { limit_reached: limitReached }),
  };
}

const perSecond = (count: number, ms: number): number => (ms > 0 ? (count * 1_000) / ms : 0);
const msPerItem = (count: number, ms: number): number => (count > 0 ? ms / count : 0);

/** Returns `timings` as llama.cpp's server names them, for one choice or for all together. */
export function timingsObject({
  usage,
  timings,
}: Pick<EventOf<'done'>, 'usage' | 'timings'>): Record<string, number> {
  const evaluated = usage.promptTokens - usage.cachedTokens;
  return {
    cache_n: usage.cachedTokens,
    prompt_n: evaluated,
    prompt_ms: timings.promptMs,
    prompt_per_token_ms: msPerItem(evaluated, timings.promptMs),
    prompt_per_second: perSecond(evaluated, timings.promptMs),
    predicted_n: usage.completionTokens,
    predicted_ms: timings.generationMs,
    predicted_per_token_ms: msPerItem(usage.completionTokens, timings.generationMs),
    predicted_per_second: perSecond(usage.completionTokens, timings.generationMs),
  };
}

/** Returns a further member of an object; '' for undefined. */
const member = (name: string, value: unknown): string =>
  value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;

/** Returns the JSON of a response object after its choices. */
export const tailJson = ({ usage, timings }: Trailer): string =>
  `]${member('usage', usage && usageObject(usage))}${member('timings', timings && timingsObject(timings))}}`;

/** @param index position in the response */
export function choiceJson(delta: ChoiceDelta, index: number): string {
  const { text, logprobs, finish, tokenIds, promptTokenIds, promptLogprobs } = delta;
  return (
    `{"index":${index},"text":${JSON.stringify(text)},"logprobs":${logprobsJson(logprobs)},` +
    `"finish_reason":${finish === null ? 'null' : `"${finish.reason}"`}` +
    member('stop_reason', finish?.stopReason) +
    member('token_ids', tokenIds ?? undefined) +
    member('prompt_token_ids', promptTokenIds ?? undefined) +
    `${promptLogprobs === null ? '' : `,"prompt_logprobs":${promptLogprobs}`}}`
  );
}

/** Returns the JSON of a plain response. */
export function completionJson(
  envelope: Envelope,
  choices: readonly ChoiceDelta[],
  trailer: Trailer,
): string {
  return headJson(envelope) + choices.map(choiceJson).join(',') + tailJson(trailer);
}
