import type { EventOf, Usage } from '../generation.ts';
import type { Envelope } from './answer-form.ts';
import type { ChoiceDelta } from './choice-deltas.ts';
import { logprobsJson } from './openai-logprobs.ts';

/** The start of every object up to its choices. */
const head = ({ id, created, model, fingerprint }: Envelope): string =>
  `{"id":${JSON.stringify(id)},"object":"text_completion","created":${created},"model":${JSON.stringify(model)},` +
  `"system_fingerprint":${JSON.stringify(fingerprint)},"choices":[`;

/** Optional members at the end of an object; undefined = absent. */
export interface Trailer {
  readonly usage?: Usage | null;
  readonly timings?: EventOf<'done'>;
}

function usageObject({ promptTokens, cachedTokens, completionTokens }: Usage): Record<string, unknown> {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

const perSecond = (count: number, ms: number): number => (ms > 0 ? (count * 1_000) / ms : 0);
const each = (count: number, ms: number): number => (count > 0 ? ms / count : 0);

function timingsObject({ usage, timings }: EventOf<'done'>): Record<string, number> {
  const evaluated = usage.promptTokens - usage.cachedTokens;
  return {
    cache_n: usage.cachedTokens,
    prompt_n: evaluated,
    prompt_ms: timings.promptMs,
    prompt_per_token_ms: each(evaluated, timings.promptMs),
    prompt_per_second: perSecond(evaluated, timings.promptMs),
    predicted_n: usage.completionTokens,
    predicted_ms: timings.generationMs,
    predicted_per_token_ms: each(usage.completionTokens, timings.generationMs),
    predicted_per_second: perSecond(usage.completionTokens, timings.generationMs),
  };
}

/** A member of an object behind others; nothing for undefined. */
const member = (name: string, value: unknown): string =>
  value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;

const tail = ({ usage, timings }: Trailer): string =>
  `]${member('usage', usage && usageObject(usage))}${member('timings', timings && timingsObject(timings))}}`;

/** A choice, or what one event adds to it; runs per token. `index` = its place in the answer. */
function choiceJson(delta: ChoiceDelta, index: number): string {
  const { text, logprobs, finish, tokenIds, promptTokenIds, promptLogprobs } = delta;
  return (
    `{"index":${index},"text":${JSON.stringify(text)},"logprobs":${logprobsJson(logprobs)},` +
    `"finish_reason":${finish === null ? 'null' : `"${finish.reason}"`}` +
    member('stop_reason', finish?.stopReason) +
    member('token_ids', tokenIds ?? undefined) +
    member('prompt_token_ids', promptTokenIds ?? undefined) +
    `${member('prompt_logprobs', promptLogprobs ?? undefined)}}`
  );
}

/** The plain answer; the choices' places are their order. */
export function completionJson(
  envelope: Envelope,
  choices: readonly ChoiceDelta[],
  trailer: Trailer,
): string {
  return head(envelope) + choices.map(choiceJson).join(',') + tail(trailer);
}

/** Writes the chunks of one stream. */
export class ChunkWriter {
  readonly #head: string;

  constructor(envelope: Envelope) {
    this.#head = head(envelope);
  }

  /** A chunk with one choice, or with none for null. */
  chunk(delta: ChoiceDelta | null, trailer: Trailer): string {
    return this.#head + (delta === null ? '' : choiceJson(delta, delta.choice)) + tail(trailer);
  }
}
