import { FIRST_PART, type RequestCost, type RequestTokens } from '@continuo/limits/reservation.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import type { ParsedCompletion } from '../dialects/parsed-completion.ts';
import type { RequestBounds } from '../dialects/request.ts';
import { estimateTokens } from '../upstreams/token-estimate.ts';

/** Returns the smaller of two bounds; null = no bound. */
const tighter = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? (left ?? right) : Math.min(left, right);

/** Upper bounds of the deployment for one request. */
interface Bounds {
  readonly MAX_SEQUENCES: number;
  readonly MAX_LOGPROB_BYTES: number;
}

/** Returns the bounds that tenant, key and deployment set for one request, and the tenant's defaults. */
export function boundsOf({ tenant, key }: Principal, settings: Bounds): RequestBounds {
  const sequences = tighter(tenant.limits.maxSequences, key.limits.maxSequences);
  const logprobBytes = tighter(tenant.limits.maxLogprobBytes, key.limits.maxLogprobBytes);
  return {
    maxTokens: tighter(tenant.limits.maxTokens, key.limits.maxTokens),
    sequences: tighter(sequences, settings.MAX_SEQUENCES) ?? settings.MAX_SEQUENCES,
    logprobBytes: tighter(logprobBytes, settings.MAX_LOGPROB_BYTES) ?? settings.MAX_LOGPROB_BYTES,
    openObjects: tenant.openObjects,
    anyKeyOrder: tenant.anyKeyOrder,
  };
}

/** Returns the cost of a call. A call without max_tokens may cost the whole context. */
export function costOf({ generation }: ParsedCompletion, model: OriginModel): Omit<RequestCost, 'price'> {
  const { prompts, context, images = [] } = generation;
  const imageTokens = images.length * (model.imageTokens ?? 0);
  const contextTokens = context === undefined ? 0 : prompts.length * estimateTokens(context.prompt);
  const promptTokens = prompts.reduce<number>(
    (sum, prompt) => sum + estimateTokens(prompt),
    imageTokens + contextTokens,
  );
  const sequences = prompts.length * generation.choices;
  const infillTokens = infillTexts(generation).reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    ...parts(
      promptTokens + Math.min(infillTokens, model.contextLength),
      sequences * maxGenerated(generation, model.contextLength),
      generation,
    ),
    model: model.id,
  };
}

/** A candidate that ended early has no score, so the ranking of candidates needs all tokens. */
const parts = (
  prompt: number,
  generated: number,
  { scores }: ParsedCompletion['generation'],
): RequestTokens => ({
  prompt,
  tokens: prompt + (scores ? generated : Math.min(generated, FIRST_PART)),
  most: prompt + generated,
});

/** Returns the other texts of an infill than its prompt. The origin cuts them to the context. */
const infillTexts = ({ suffix, infill }: ParsedCompletion['generation']): string[] =>
  infill === undefined ? [] : [suffix ?? '', infill.middle, ...infill.files.map(({ text }) => text)];

/** Returns the cost of a call whose prompts have been tokenized. A sequence ends with its context. */
export function costWith(
  promptTokens: readonly number[],
  { generation }: ParsedCompletion,
  { contextLength }: OriginModel,
): RequestTokens {
  const prompt = promptTokens.reduce((sum, tokens) => sum + tokens, 0);
  const generated = promptTokens.reduce(
    (sum, tokens) => sum + generation.choices * maxGenerated(generation, Math.max(0, contextLength - tokens)),
    0,
  );
  return parts(prompt, generated, generation);
}

const maxGenerated = ({ maxTokens }: ParsedCompletion['generation'], room: number): number =>
  maxTokens === 'end' ? room : Math.min(maxTokens, room);
