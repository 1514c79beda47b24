/**
 * How a byte-level vocabulary splits text into words before merging, by llama.cpp's name for it
 * (`tokenizer.ggml.pre`). The expressions are those of the tokenizer.json of the models that the names stand
 * for.
 */
interface PreTokenizer {
  /** Steps of tokenizer.json. */
  readonly steps: readonly object[];
  /** Words that are in the vocabulary are taken whole, whatever the merges say. */
  readonly ignoreMerges?: boolean;
  /** Text is composed first (NFC). */
  readonly composed?: boolean;
  /** BOS comes before a text unless the file says otherwise. */
  readonly addsBos?: boolean;
}

const split = (Regex: string) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
const BYTES = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
const WORDS = { ...BYTES, use_regex: true };
const DIGITS = { type: 'Digits', individual_digits: true };

/** Splits by one expression after the other. */
const by = (...expressions: readonly string[]) => [...expressions.map(split), BYTES];

const CONTRACTION = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`;
const SPACES = String.raw`\s+(?!\S)|\s+`;
const LINES = String.raw`\s*[\r\n]+`;

/** The expression of GPT-4 with numbers of at most this many digits, as Llama 3 and Qwen 2 have it. */
const gpt4 = (number: string) =>
  String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?\p{L}+|${number}| ?[^\s\p{L}\p{N}]+[\r\n]*|${LINES}|${SPACES}`;

const THREE_DIGITS = String.raw`\p{N}{1,3}`;
const ONE_DIGIT = String.raw`\p{N}`;

/** The expression of GPT-4o: words end where capitals begin. */
function gpt4o(number: string, contraction: string): string {
  const upper = String.raw`\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`;
  const lower = String.raw`\p{Ll}\p{Lm}\p{Lo}\p{M}`;
  const start = String.raw`[^\r\n\p{L}\p{N}]?`;
  const words = `${start}[${upper}]*[${lower}]+${contraction}|${start}[${upper}]+[${lower}]*${contraction}`;
  return String.raw`${words}|${number}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${LINES}|${SPACES}`;
}

/** Letters that have upper and lower case, as DeepSeek lists them. */
const CASED = [
  'A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af',
  '\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5',
  '\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba',
  '\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45',
  '\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe',
  '\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc',
  '\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139',
  '\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3',
  '\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06',
  '\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}',
  '\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-\u{1e943}',
].join('');
const EAST_ASIAN = '[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+';

const DEEPSEEK_LLM = by(
  String.raw`[\r\n]`,
  String.raw`\s?[${CASED}]+`,
  '\\s?[!-\\/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+',
  String.raw`\s+$`,
  EAST_ASIAN,
  String.raw`\p{N}`,
);
const DEEPSEEK_CODER = by(
  String.raw`[\r\n]`,
  String.raw`\s?\p{L}+`,
  String.raw`\s?\p{P}+`,
  EAST_ASIAN,
  ONE_DIGIT,
);
const DEEPSEEK_V3 = by(
  THREE_DIGITS,
  '[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+',
  String.raw`[!"#$%&'()*+,\-.\/:;<=>?@\[\\\]^_\x60{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|${LINES}|${SPACES}`,
);
const FALCON = [
  { type: 'Punctuation', behavior: 'Contiguous' },
  WORDS,
  { type: 'Digits', individual_digits: false },
  split('[0-9][0-9][0-9]'),
];
const BLOOM = String.raw` ?[^(\s|.,!?…。，、।۔،)]+`;
const QWEN3_5 = String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|${LINES}|${SPACES}`;
const SEED = String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|${LINES}|${SPACES}`;

const rows: readonly (readonly [names: readonly string[], PreTokenizer])[] = [
  [
    ['llama-bpe', 'llama3', 'llama-v3', 'falcon3', 'pixtral', 'midm-2.0', 'lfm2'],
    { steps: by(gpt4(THREE_DIGITS)), ignoreMerges: true, addsBos: true },
  ],
  [['dbrx', 'smaug-bpe', 'chatglm-bpe'], { steps: by(gpt4(THREE_DIGITS)) }],
  [['glm4'], { steps: by(gpt4(THREE_DIGITS)), ignoreMerges: true }],
  [['qwen2', 'deepseek-r1-qwen'], { steps: by(gpt4(ONE_DIGIT)), composed: true }],
  [['stablelm2', 'hunyuan', 'megrez', 'solar-open', 'grok-2'], { steps: by(gpt4(ONE_DIGIT)) }],
  [['qwen35'], { steps: by(QWEN3_5) }],
  [['gpt-2', 'phi-2', 'jais', 'gigachat', 'mellum', 'exaone4', 'trillion'], { steps: [WORDS] }],
  [['olmo', 'mpt'], { steps: [WORDS], composed: true }],
  [['starcoder', 'refact', 'smollm', 'codeshell', 'exaone', 'minerva-7b'], { steps: [DIGITS, WORDS] }],
  [['command-r'], { steps: [DIGITS, WORDS], composed: true }],
  [['falcon'], { steps: FALCON }],
  [['deepseek-llm'], { steps: DEEPSEEK_LLM }],
  [['deepseek-coder'], { steps: DEEPSEEK_CODER }],
  [['deepseek-v3', 'hunyuan-dense'], { steps: DEEPSEEK_V3 }],
  [['tekken'], { steps: by(gpt4o(ONE_DIGIT, '')), ignoreMerges: true, addsBos: true }],
  [['gpt-4o', 'llama4', 'kanana2'], { steps: by(gpt4o(THREE_DIGITS, `${CONTRACTION}?`)) }],
  [['bloom', 'poro-chat', 'gpt3-finnish'], { steps: by(BLOOM) }],
  [['viking'], { steps: by(BLOOM, ONE_DIGIT) }],
  [['seed-coder'], { steps: by(SEED) }],
];

export const PRE_TOKENIZERS: ReadonlyMap<string, PreTokenizer> = new Map(
  rows.flatMap(([names, row]) => names.map((name) => [name, row] as const)),
);
