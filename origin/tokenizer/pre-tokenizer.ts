import type { TokenizerJson } from './tokenizer-files.ts';

type Step = NonNullable<TokenizerJson['pre_tokenizer']>;

/** The words of a byte-level vocabulary, unless it names others (GPT-2). */
const WORDS = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

const NUMERIC = String.raw`\p{N}`;
const PUNCTUATION = String.raw`[\p{P}!-\/:-@\[-\x60{-~]`;

/**
 * The same cuts, said in steps that the JavaScript library takes as the Rust library does, with which models are made.
 * By itself it never cuts at Metaspace's marks, isolates whatever a Split finds, knows no digits but ASCII's, and takes
 * its own language's white space for the words of byte-level vocabularies.
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
      return step.invert === true ? step : cut(expressionOf(step.pattern), step.behavior);
    case 'ByteLevel':
      // The library would have to put its space before the words are cut.
      if (step.use_regex === false || step.add_prefix_space === true) return step;
      return sequence(cut(WORDS, 'Isolated'), { ...step, use_regex: false });
    default:
      return step;
  }
}

const sequence = (...pretokenizers: Step[]): Step => ({ type: 'Sequence', pretokenizers });

/** Cuts at what the expression finds, whatever becomes of that. */
function cut(found: string, behavior: unknown): Step {
  const other = String.raw`(?:(?!${found})[\s\S])`;
  const pieces: Readonly<Record<string, string>> = {
    MergedWithNext: `(?:${found})${other}*|${other}+`,
    MergedWithPrevious: `${other}*(?:${found})|${other}+`,
    Contiguous: `(?:${found})+|${other}+`,
  };
  const merged = pieces[String(behavior)];
  const pattern = { Regex: merged ?? found };
  return { type: 'Split', pattern, behavior: merged === undefined ? behavior : 'Isolated', invert: false };
}

function expressionOf(pattern: unknown): string {
  const { Regex, String: text } = pattern as { Regex?: string; String?: string };
  return Regex ?? literal(text);
}

const literal = (text: unknown): string =>
  Array.from(String(text), (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`).join('');
