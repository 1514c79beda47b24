import { describe, expect, test } from 'vitest';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { byteLevelTokenizer, modelDirectory, sentencePieceTokenizer } from './fixtures.ts';

/** Where texts are cut before the model merges: merges that only a cut forbids show it. */

const CROSSING = ['a Ġ', 'Ġ b', 'Ġ Ġ', '! !', 'Â ²', 'Â² Â²', '¿ Ċ', 'ħ Ċ', 'a b', 'Ã ©', 'a Ã©'];

function pieces(json: object, text: string): string[] {
  const tokenizer = Tokenizer.of(textsOf(modelDirectory({ 'tokenizer.json': json })));
  const ids = tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: true });
  return ids.map((id) => tokenizer.spelling(id));
}

function withMerges(json: object, merges: readonly string[], overrides: object): object {
  const { model } = json as { model: { vocab: Record<string, number> } };
  const merged = merges.map((merge) => merge.replace(' ', ''));
  const next = Math.max(...Object.values(model.vocab)) + 1;
  const added = Object.fromEntries(merged.map((text, index) => [text, next + index]));
  return { ...json, ...overrides, model: { ...model, vocab: { ...model.vocab, ...added }, merges } };
}

describe('splits byte-level texts as the Rust library does', () => {
  const bytes = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
  const words = { ...bytes, use_regex: true };
  const split = (behavior: string, pattern: object = { String: ' ' }, invert = false) => ({
    type: 'Split',
    pattern,
    behavior,
    invert,
  });
  const letters = { Regex: 'a|b' };

  // Recorded from tokenizers 0.23.3 (Rust).
  test.each([
    ['spaces with what follows', split('MergedWithNext'), bytes, 'a b  a', 'a|Ġb|Ġ|Ġ|a'],
    ['spaces with what comes before', split('MergedWithPrevious'), bytes, 'a b  a', 'aĠ|b|Ġ|Ġ|a'],
    ['runs of spaces', split('Contiguous'), bytes, 'a  b a', 'a|ĠĠ|b|Ġ|a'],
    ['an expression with what follows', split('MergedWithNext', { Regex: 'a|b' }), bytes, 'a b', 'aĠ|b'],
    ['each digit, ASCII or not', { type: 'Digits', individual_digits: true }, bytes, '²²', 'Â²|Â²'],
    ['runs of digits', { type: 'Digits', individual_digits: false }, bytes, 'a²²', 'a|Â²Â²'],
    ['each punctuation mark', { type: 'Punctuation' }, bytes, '!!', '!|!'],
    ['runs of punctuation marks', { type: 'Punctuation', behavior: 'Contiguous' }, bytes, 'a b!!', 'aĠ|b|!!'],
    ['a byte order mark, which is no space', words, null, 'a\ufeff\n', 'a|ï|»|¿|Ċ'],
    ['a next-line mark, which is one', words, null, 'a\u0085\n', 'a|Â|ħĊ'],
    ['what an inverted expression leaves', split('Isolated', letters, true), bytes, 'ab  b', 'a|b|ĠĠ|b'],
    ['runs of both, inverted', split('Contiguous', letters, true), bytes, 'ab  b', 'ab|ĠĠ|b'],
    ['matches of an expression only', split('Removed', letters, true), bytes, 'ab  b', 'a|b|b'],
    ['words with accents and drops white space', { type: 'Whitespace' }, bytes, 'aé\u0085b!! ', 'aÃ©|b|!!'],
    [
      'at white space and drops it',
      { type: 'WhitespaceSplit' },
      bytes,
      'aé\u0085b!! \ufeff',
      'aÃ©|b|!!|ï|»|¿',
    ],
  ])('%s', (_, first, second, text, cut) => {
    const steps = second === null ? first : { type: 'Sequence', pretokenizers: [first, second] };
    const json = withMerges(byteLevelTokenizer([]), CROSSING, { pre_tokenizer: steps });
    expect(pieces(json, text).join('|')).toBe(cut);
  });
});

describe('Metaspace', () => {
  const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' };
  const json = (step: object) =>
    withMerges(sentencePieceTokenizer(), ['▁ ▁', '▁ h'], { normalizer: null, pre_tokenizer: step });

  // Recorded from tokenizers 0.23.3 (Rust).
  test.each([
    ['cuts before each mark', {}, '▁h|o|▁|▁|▁h'],
    ['cuts nowhere where it says so', { split: false }, '▁h|o|▁▁|▁h'],
  ])('%s', (_, changes, cut) => {
    expect(pieces(json({ ...metaspace, ...changes }), 'ho   h').join('|')).toBe(cut);
  });
});
