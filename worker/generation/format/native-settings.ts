import type { OriginModel } from '@continuo/shared/generation.ts';
import { exactNumber } from '@continuo/shared/json-fields.ts';
import type { CompletionCall } from '../../dialects/completion-call.ts';

/** llama.cpp's name of a random seed. */
const RANDOM_SEED = 2 ** 32 - 1;

/** Returns `generation_settings` of llama.cpp's server: the settings of a request, with all defaults. */
export function nativeSettings(
  { generation }: Pick<CompletionCall, 'generation'>,
  { contextLength }: Pick<OriginModel, 'contextLength'>,
): Record<string, unknown> {
  const { sampling, maxTokens, constraint } = generation;
  return {
    n_ctx: contextLength,
    n_predict: maxTokens,
    max_tokens: maxTokens,
    seed: exactNumber(sampling.seed ?? RANDOM_SEED),
    temperature: sampling.temperature,
    dynatemp_range: sampling.dynatempRange,
    dynatemp_exponent: sampling.dynatempExponent,
    top_k: sampling.topK,
    top_p: sampling.topP,
    min_p: sampling.minP,
    top_n_sigma: sampling.topNSigma,
    typical_p: sampling.typicalP,
    xtc_probability: sampling.xtcProbability,
    xtc_threshold: sampling.xtcThreshold,
    repeat_last_n: sampling.repeatLastN,
    repeat_penalty: sampling.repetitionPenalty,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    dry_multiplier: sampling.dryMultiplier,
    dry_base: sampling.dryBase,
    dry_allowed_length: sampling.dryAllowedLength,
    dry_penalty_last_n: sampling.dryPenaltyLastN,
    dry_sequence_breakers: sampling.drySequenceBreakers,
    mirostat: sampling.mirostat,
    mirostat_tau: sampling.mirostatTau,
    mirostat_eta: sampling.mirostatEta,
    min_keep: sampling.minKeep,
    logit_bias: sampling.logitBias.map(([token, bias]) => ({ token, bias })),
    stop: generation.stop,
    ignore_eos: generation.ignoreEos,
    grammar: constraint?.type === 'gbnf' ? constraint.value : '',
    n_probs: generation.topLogprobs ?? 0,
    stream: generation.stream,
  };
}
