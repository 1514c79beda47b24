import type { TokenizerJson } from './tokenizer-files.ts';

/** Reads properties of a tokenizer.json pipeline. */

type Step = NonNullable<TokenizerJson['decoder']>;

const NESTED = ['normalizers', 'pretokenizers', 'processors', 'decoders'] as const;

/** Returns the steps of one stage in order, with nested sequences flattened. */
function stepsOf(stage: Step | null | undefined): Step[] {
  if (!stage) return [];
  const nested = NESTED.map((key) => stage[key]).find(Array.isArray) as Step[] | undefined;
  return stage.type === 'Sequence' ? (nested ?? []).flatMap((inner) => stepsOf(inner)) : [stage];
}

/** Reports whether tokens spell bytes with the byte-level alphabet. */
export function isByteLevel(tokenizer: TokenizerJson): boolean {
  const stages = [...stepsOf(tokenizer.decoder), ...stepsOf(tokenizer.pre_tokenizer)];
  return stages.some((step) => step.type === 'ByteLevel');
}

/** Reports whether tokens spell spaces as ▁ and single bytes as `<0xNN>`. */
export function isSentencePiece(tokenizer: TokenizerJson): boolean {
  const stages = [...stepsOf(tokenizer.decoder), ...stepsOf(tokenizer.pre_tokenizer)];
  return tokenizer.model.byte_fallback === true || stages.some((step) => step.type === 'Metaspace');
}

/** Reports whether the pipeline puts a space before the first word of a text. */
export function addsLeadingSpace(tokenizer: TokenizerJson): boolean {
  const prepends = stepsOf(tokenizer.normalizer).some((step) => step.type === 'Prepend');
  const cuts = stepsOf(tokenizer.pre_tokenizer);
  const prefixes = cuts.some((step) => step.type === 'ByteLevel' && step.add_prefix_space === true);
  const metaspace = cuts.find((step) => step.type === 'Metaspace');
  return (
    prepends || prefixes || (metaspace !== undefined && (metaspace.prepend_scheme ?? 'always') !== 'never')
  );
}

/** Returns the texts of the special tokens that the post-processor puts before a text. */
export function leadingSpecials(tokenizer: TokenizerJson): string[] {
  for (const step of stepsOf(tokenizer.post_processor)) {
    if (step.type === 'TemplateProcessing') return templatePrefix(step.single);
    const start = step.cls;
    if (Array.isArray(start) && typeof start[0] === 'string') return [start[0]];
  }
  return [];
}

function templatePrefix(template: unknown): string[] {
  const items = Array.isArray(template) ? (template as { SpecialToken?: { id: string } }[]) : [];
  const text = items.findIndex((item) => item.SpecialToken === undefined);
  return items.slice(0, Math.max(text, 0)).flatMap((item) => item.SpecialToken?.id ?? []);
}

/**
 * Returns the most UTF-16 units of text that one token of `longest` bytes can represent. Infinity if the
 * pipeline may drop text or fold any amount of it into one token.
 */
export function longestSpan(tokenizer: TokenizerJson, longest: number): number {
  const swallows = (tokenizer.added_tokens ?? []).some(
    (token) => token.lstrip === true || token.rstrip === true,
  );
  const cuts = stepsOf(tokenizer.pre_tokenizer);
  const drops = cuts.some(({ type, behavior }) => behavior === 'Removed' || /^(Whitespace|Bert)/.test(type));
  const spelled = isByteLevel(tokenizer) || tokenizer.model.byte_fallback === true;
  const normalizers = stepsOf(tokenizer.normalizer);
  const shortens = normalizers.some((step) => !KEEPS_LENGTH.has(step.type) && !replacesSpace(step));
  if (swallows || drops || !spelled || shortens) return Number.POSITIVE_INFINITY;
  return longest * (normalizers.some((step) => step.type === 'NFC') ? COMPOSED : 1);
}

const KEEPS_LENGTH: ReadonlySet<string> = new Set(['NFC', 'NFD', 'Prepend']);

/** NFC composes up to four units into one character of at least two bytes. */
const COMPOSED = 2;

const replacesSpace = (step: Step) =>
  step.type === 'Replace' &&
  /^{"(String|Regex)":" "}$/.test(JSON.stringify(step.pattern)) &&
  step.content === '\u2581';
