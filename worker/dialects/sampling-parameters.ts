import type { CompletionRequest } from '@continuo/shared/completion.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '@continuo/shared/sampling.ts';
import { either } from './aliases.ts';
import type { Defaults } from './dialect.ts';

type Mirostat = Pick<SamplingParameters, 'mirostat' | 'mirostatTau' | 'mirostatEta'>;

/** Servers without the field `mirostat` enable Mirostat 2 by target or rate. Their default target is 1.5. */
function mirostat(request: CompletionRequest): Mirostat {
  const tau = either(request, 'mirostat_tau', 'mirostat_target');
  const eta = either(request, 'mirostat_eta', 'mirostat_lr');
  const named = request.mirostat ?? null;
  const implied = (request.mirostat_target ?? request.mirostat_lr ?? null) !== null;
  const mode = named ?? (implied ? 2 : 0);
  return {
    mirostat: mode === 1 ? 1 : mode === 2 ? 2 : 0,
    mirostatTau: tau ?? (named === null && implied ? 1.5 : NEUTRAL_SAMPLING.mirostatTau),
    mirostatEta: eta ?? NEUTRAL_SAMPLING.mirostatEta,
  };
}

type SamplingField = keyof SamplingParameters;

/** The settings of llama.cpp's samplers, by name and by letter. */
const SAMPLERS: readonly (readonly [names: readonly string[], fields: readonly SamplingField[]])[] = [
  [
    ['penalties', 'e'],
    ['repetitionPenalty', 'frequencyPenalty', 'presencePenalty'],
  ],
  [['dry', 'd'], ['dryMultiplier']],
  [['top_n_sigma', 's'], ['topNSigma']],
  [['top_k', 'k'], ['topK']],
  [['typ_p', 'typical_p', 'typical', 'y'], ['typicalP']],
  [['top_p', 'p'], ['topP']],
  [['min_p', 'm'], ['minP']],
  [['xtc', 'x'], ['xtcProbability']],
  [
    ['temperature', 'temp', 't'],
    ['temperature', 'dynatempRange'],
  ],
];

/** Returns neutral values for all samplers that a request leaves out. Mirostat replaces the list. */
function unnamed(
  { samplers }: CompletionRequest,
  mode: SamplingParameters['mirostat'],
): Partial<SamplingParameters> {
  if (samplers === undefined || samplers === null || mode > 0) return {};
  const named = new Set<string>(samplers);
  const unused = SAMPLERS.filter(([names]) => !names.some((name) => named.has(name)));
  return Object.fromEntries(
    unused.flatMap(([, fields]) => fields).map((field) => [field, NEUTRAL_SAMPLING[field]]),
  );
}

type Biases = Pick<SamplingParameters, 'logitBias' | 'logitBiasTexts'>;

/** Parts the biases of token ids from those of texts. */
function biasesOf(biases: NonNullable<CompletionRequest['logit_bias']>): Biases {
  const logitBias = biases.flatMap(([id, bias]) =>
    typeof id === 'number' ? [[id, bias] as [number, typeof bias]] : [],
  );
  const texts = biases.flatMap(([text, bias]) =>
    typeof text === 'string' ? [[text, bias] as [string, typeof bias]] : [],
  );
  return { logitBias, ...(texts.length > 0 && { logitBiasTexts: texts }) };
}

/** Returns the sampling parameters for the wire: from the request, else the default, else neutral. */
export function samplingOf(request: CompletionRequest, defaults: Defaults): SamplingParameters {
  const neutral = NEUTRAL_SAMPLING;
  const seed = request.seed ?? -1;
  const entropy = mirostat(request);
  return {
    temperature: request.temperature ?? defaults.temperature,
    dynatempRange: request.dynatemp_range ?? neutral.dynatempRange,
    dynatempExponent: request.dynatemp_exponent ?? neutral.dynatempExponent,
    topK: Math.max(0, request.top_k ?? defaults.topK),
    topP: request.top_p ?? defaults.topP,
    minP: request.min_p ?? defaults.minP,
    typicalP: either(request, 'typical_p', 'typ_p') ?? neutral.typicalP,
    topNSigma: request.top_n_sigma ?? neutral.topNSigma,
    xtcProbability: request.xtc_probability ?? neutral.xtcProbability,
    xtcThreshold: request.xtc_threshold ?? neutral.xtcThreshold,
    ...entropy,
    repetitionPenalty: either(request, 'repetition_penalty', 'repeat_penalty') ?? defaults.repetitionPenalty,
    frequencyPenalty: request.frequency_penalty ?? neutral.frequencyPenalty,
    presencePenalty: request.presence_penalty ?? neutral.presencePenalty,
    repeatLastN: request.repeat_last_n ?? defaults.repeatLastN,
    penaltyScope: defaults.penaltyScope,
    dryMultiplier: request.dry_multiplier ?? neutral.dryMultiplier,
    dryBase: request.dry_base ?? neutral.dryBase,
    dryAllowedLength: request.dry_allowed_length ?? neutral.dryAllowedLength,
    dryPenaltyLastN: request.dry_penalty_last_n ?? neutral.dryPenaltyLastN,
    drySequenceBreakers: request.dry_sequence_breakers ?? neutral.drySequenceBreakers,
    minKeep: request.min_keep ?? neutral.minKeep,
    ...biasesOf(request.logit_bias ?? []),
    allowedTokenIds: request.allowed_token_ids ?? neutral.allowedTokenIds,
    badWords: request.bad_words ?? neutral.badWords,
    seed: seed === -1 ? null : typeof seed === 'bigint' ? String(seed) : seed,
    ...unnamed(request, entropy.mirostat),
  };
}
