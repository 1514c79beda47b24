import type { TokenizerJson } from './tokenizer-files.ts';

type Step = NonNullable<TokenizerJson['pre_tokenizer']>;

/** GPT-2's word pattern, the default of byte-level vocabularies. */
const WORDS = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

const NUMERIC = String.raw`\p{N}`;
const PUNCTUATION = String.raw`[\p{P}!-\/:-@\[-\x60{-~]`;

/**
 * Rewrites pre-tokenizer steps so that the JavaScript library splits text as the Rust library does, which
 * models are trained with. By itself, it never splits at Metaspace marks, isolates every match of a Split,
 * and drops what an inverted one does not match. It knows only ASCII digits and letters, and uses
 * JavaScript's white space.
 * @throws Error for an inverted Split that merges
 */
export function withPortableCuts(step: Step): Step {
  switch (step.type) {
    case 'Sequence':
      return { ...step, pretokenizers: (step.pretokenizers as Step[]).map(withPortableCuts) };
    case 'Metaspace':
      return step.split === false
        ? step
        : sequence(step, cut(literal(step.replacement ?? '\u2581'), 'MergedWithNext'));
    case 'Digits':
      return cut(NUMERIC, step.individual_digits === true ? 'Isolated' : 'Contiguous');
    case 'Punctuation':
      return cut(PUNCTUATION, step.behavior ?? 'Isolated');
    case 'Split':
      return step.invert === true ? inverted(step) : cut(expressionOf(step.pattern), step.behavior);
    case 'Whitespace':
      return matches(String.raw`\w+|[^\w\s]+`);
    case 'WhitespaceSplit':
      return matches(String.raw`\S+`);
    case 'ByteLevel':
      // The library adds the space only after splitting.
      if (step.use_regex === false || step.add_prefix_space === true) return step;
      return sequence(cut(WORDS, 'Isolated'), { ...step, use_regex: false });
    default:
      return step;
  }
}

/** Keeps the matches of an expression and drops what is between them. */
const matches = (Regex: string): Step => ({
  type: 'Split',
  pattern: { Regex },
  behavior: 'Removed',
  invert: true,
});

/** Isolated and Contiguous do the same with matches and with what is between them. */
function inverted({ pattern, behavior }: Step): Step {
  if (behavior === 'Removed') return matches(expressionOf(pattern));
  if (behavior === 'Isolated' || behavior === 'Contiguous') return cut(expressionOf(pattern), behavior);
  throw new Error(`pre_tokenizer: Split with invert and the behavior ${behavior} is not supported`);
}

const sequence = (...pretokenizers: Step[]): Step => ({ type: 'Sequence', pretokenizers });

/** Splits at the matches of an expression, with the behavior of tokenizer.json. */
function cut(match: string, behavior: unknown): Step {
  const between = String.raw`(?:(?!${match})[\s\S])`;
  const pieces: Readonly<Record<string, string>> = {
    MergedWithNext: `(?:${match})${between}*|${between}+`,
    MergedWithPrevious: `${between}*(?:${match})|${between}+`,
    Contiguous: `(?:${match})+|${between}+`,
  };
  const merged = pieces[String(behavior)];
  const pattern = { Regex: merged ?? match };
  return { type: 'Split', pattern, behavior: merged === undefined ? behavior : 'Isolated', invert: false };
}

function expressionOf(pattern: unknown): string {
  const { Regex, String: text } = pattern as { Regex?: string; String?: string };
  return Regex ?? literal(text);
}

const literal = (text: unknown): string =>
  Array.from(String(text), (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`).join('');
