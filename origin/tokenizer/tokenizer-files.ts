import { isJsonObject } from '@continuo/shared/json-object.ts';
import * as z from 'zod';
import { ModelError, type ModelTexts, readModelJson, tokenIds } from '../model/config/model-json.ts';

/** Reads and checks the files of a model directory that describe its vocabulary. */

const addedToken = z.looseObject({
  id: z.int().min(0),
  content: z.string().min(1),
  special: z.boolean().optional(),
  single_word: z.literal(false, 'tokens that are only found as single words are not supported').nullish(),
});

/** A step of the tokenizer's pipeline; sequences nest under a key that depends on the kind of step. */
const namedStep = z.looseObject({ type: z.string() });
const step = namedStep.nullish();
type Step = z.infer<typeof namedStep>;

/** LLM-jp's Prepend is a Replace of this place, which the library also finds inside of surrogate pairs. */
const START = { Regex: '(?<!\\n)^' };

function withPrepend(step: Step): Step {
  if (Array.isArray(step.normalizers))
    return { ...step, normalizers: (step.normalizers as Step[]).map(withPrepend) };
  const atStart = step.type === 'Replace' && JSON.stringify(step.pattern) === JSON.stringify(START);
  return atStart ? { type: 'Prepend', prepend: step.content } : step;
}

type IdsByText = Readonly<Record<string, number>>;

/** Written by hand, because zod's records drop the key `__proto__`, which can be a token. */
const isIdsByText = (value: unknown): boolean =>
  isJsonObject(value) && Object.values(value).every((id) => Number.isInteger(id) && (id as number) >= 0);

const tokenizerJson = z.looseObject({
  added_tokens: z.array(addedToken).nullish(),
  normalizer: namedStep.transform(withPrepend).nullish(),
  pre_tokenizer: step,
  post_processor: step,
  decoder: step,
  model: z.looseObject({
    type: z.enum(['BPE', 'Unigram']),
    /** BPE: token → id. Unigram: [token, score] at its id. */
    vocab: z.union([z.custom<IdsByText>(isIdsByText), z.array(z.tuple([z.string(), z.number()]))]),
    merges: z.array(z.union([z.string(), z.tuple([z.string(), z.string()])])).optional(),
    /** Continuo's own field: the rank of each merge, if several have the same. Absent: their order. */
    ranks: z.array(z.int()).optional(),
    byte_fallback: z.boolean().nullish(),
  }),
});
export type TokenizerJson = z.infer<typeof tokenizerJson>;

const tokenText = z.union([z.string(), z.looseObject({ content: z.string() }).transform((t) => t.content)]);

const tokenizerConfig = z.looseObject({
  bos_token: tokenText.nullish(),
  eos_token: tokenText.nullish(),
  pad_token: tokenText.nullish(),
  unk_token: tokenText.nullish(),
  add_bos_token: z.boolean().nullish(),
  chat_template: z.unknown().optional(),
});

const generationConfig = z.looseObject({ eos_token_id: tokenIds.nullish() });
const modelConfig = z.looseObject({
  eos_token_id: tokenIds.nullish(),
  vocab_size: z.int().min(1).optional(),
});
const genaiConfig = z.looseObject({ model: modelConfig.optional() });

export interface TokenizerFiles {
  readonly tokenizer: TokenizerJson;
  readonly config: z.infer<typeof tokenizerConfig>;
  readonly generation: z.infer<typeof generationConfig>;
  readonly model: z.infer<typeof modelConfig>;
}

/**
 * Reads tokenizer.json, which is required, and tokenizer_config.json, generation_config.json, config.json and
 * genai_config.json, which are optional.
 * @throws ModelError
 */
export function readTokenizerFiles(texts: ModelTexts): TokenizerFiles {
  const genai = readModelJson(texts, 'genai_config.json', genaiConfig)?.model ?? {};
  const model = readModelJson(texts, 'config.json', modelConfig) ?? {};
  const tokenizer = readModelJson(texts, 'tokenizer.json', tokenizerJson);
  if (tokenizer === undefined) throw new ModelError(`${texts.directory}/tokenizer.json is missing`);
  return {
    tokenizer,
    config: readModelJson(texts, 'tokenizer_config.json', tokenizerConfig) ?? {},
    generation: readModelJson(texts, 'generation_config.json', generationConfig) ?? {},
    model: {
      ...model,
      // The builder copies all ids of generation_config.json; a config.json beside it names only the first.
      eos_token_id: genai.eos_token_id ?? model.eos_token_id,
      vocab_size: model.vocab_size ?? genai.vocab_size,
    },
  };
}
