import { exactNumber } from '@continuo/shared/exact-numbers.ts';
import { toSnakeCase } from '@continuo/shared/field-names.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import { tokenLimitNumber } from '@continuo/shared/sampling.ts';
import type { ParsedCompletion } from '../../dialects/parsed-completion.ts';

/** llama.cpp's name of a random seed. */
const RANDOM_SEED = 2 ** 32 - 1;

/** Returns `generation_settings` of llama.cpp's server: the settings of a request, with all defaults. */
export function nativeSettings(
  { generation }: Pick<ParsedCompletion, 'generation'>,
  { contextLength }: Pick<OriginModel, 'contextLength'>,
): Record<string, unknown> {
  const { sampling, maxTokens, constraint } = generation;
  const {
    seed,
    repetitionPenalty,
    logitBias,
    logitBiasTexts,
    penaltyScope,
    allowedTokenIds,
    badWords,
    ...rest
  } = sampling;
  return {
    ...toSnakeCase(rest),
    n_ctx: contextLength,
    n_predict: tokenLimitNumber(maxTokens),
    max_tokens: tokenLimitNumber(maxTokens),
    seed: exactNumber(seed ?? RANDOM_SEED),
    repeat_penalty: repetitionPenalty,
    logit_bias: [...logitBias, ...(logitBiasTexts ?? [])].map(([token, bias]) => ({ token, bias })),
    stop: generation.stop,
    ignore_eos: generation.ignoreEos,
    grammar: constraint?.type === 'gbnf' ? constraint.value : '',
    n_probs: generation.topLogprobs ?? 0,
    stream: generation.stream,
  };
}
