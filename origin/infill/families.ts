import { type InfillTemplate, PSM, SPM } from './template.ts';

/**
 * The published templates by model family. The first family whose markers are all in the vocabulary is used.
 * Families that share markers differ in `requires`; the more specific one comes first.
 */
interface Family {
  readonly models: string;
  readonly template: InfillTemplate;
  /** Further tokens that the vocabulary must have. */
  readonly requires?: readonly string[];
}

const QWEN_STOPS = ['<|endoftext|>', '<|fim_pad|>', '<|repo_name|>', '<|file_sep|>', '<|im_end|>'];
const CODEGEMMA_STOPS = ['<|file_separator|>', '<eos>'];
const GRANITE_STOPS = ['<|end_of_text|>', '<|endoftext|>', '<|fim_pad|>'];
const BARRED_STOPS = [...new Set([...QWEN_STOPS, ...CODEGEMMA_STOPS, ...GRANITE_STOPS])];

const template = (
  layout: InfillTemplate['layout'],
  [prefix, suffix, middle]: readonly [string, string, string | null],
  stops: readonly string[],
  repository: InfillTemplate['repository'] = null,
): InfillTemplate => ({ layout, prefix, suffix, middle, stops, repository });

export const FAMILIES: readonly Family[] = [
  {
    // One template for all: the vocabularies differ only in end tokens and file markers, and missing ones are
    // skipped.
    models: 'Qwen2.5-Coder, Qwen3-Coder, CodeGemma, Granite 4',
    template: template(PSM, ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'], BARRED_STOPS, {
      name: '<|repo_name|>',
      file: '<|file_sep|>',
    }),
  },
  {
    models: 'StarCoder, StarCoder2, Granite code',
    template: template(
      PSM,
      ['<fim_prefix>', '<fim_suffix>', '<fim_middle>'],
      ['<|endoftext|>', '<fim_pad>', '<file_sep>', '<repo_name>'],
      { name: '<repo_name>', file: '<file_sep>' },
    ),
  },
  {
    models: 'SantaCoder',
    template: template(PSM, ['<fim-prefix>', '<fim-suffix>', '<fim-middle>'], ['<|endoftext|>', '<fim-pad>']),
  },
  {
    models: 'CodeLlama 7B and 13B',
    template: template(PSM, ['\u2581<PRE>', '\u2581<SUF>', '\u2581<MID>'], ['\u2581<EOT>', '</s>']),
  },
  {
    models: 'DeepSeek-Coder',
    template: template(
      PSM,
      ['<｜fim▁begin｜>', '<｜fim▁hole｜>', '<｜fim▁end｜>'],
      ['<｜end▁of▁sentence｜>', '<|EOT|>'],
    ),
  },
  {
    models: 'Codestral',
    template: template(['suffix', 'S', 'prefix', 'P'], ['[PREFIX]', '[SUFFIX]', null], ['</s>']),
  },
  {
    models: 'Seed-Coder',
    template: template(SPM, ['<[fim-prefix]>', '<[fim-suffix]>', '<[fim-middle]>'], ['<[end▁of▁sentence]>']),
  },
  {
    models: 'GLM-4.5',
    template: template(
      PSM,
      ['<|code_prefix|>', '<|code_suffix|>', '<|code_middle|>'],
      ['<|endoftext|>', '<|user|>'],
    ),
    requires: ['<think>'],
  },
  {
    // The prefix follows its own marker `middle`: the text of the gap continues it.
    models: 'the built-in model',
    template: template(
      ['prefix', 'suffix', 'S', 'middle', 'P'],
      ['<|gap_prefix|>', '<|gap_suffix|>', '<|gap_middle|>'],
      ['<|endoftext|>'],
    ),
  },
  {
    models: 'CodeGeeX4',
    template: template(
      SPM,
      ['<|code_prefix|>', '<|code_suffix|>', '<|code_middle|>'],
      ['<|endoftext|>', '<|user|>'],
    ),
  },
];

/** The markers of all families: control tokens even if a vocabulary does not flag them as special. */
export const MARKERS: ReadonlySet<string> = new Set(
  FAMILIES.flatMap(({ template: { prefix, suffix, middle, repository } }) =>
    [prefix, suffix, middle, repository?.name, repository?.file].filter((text) => typeof text === 'string'),
  ),
);
