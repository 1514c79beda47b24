import { describe, expect, it } from 'vitest';
import { samplerVocabulary } from '../../../origin/engine/sampler-vocabulary.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { byteLevelDirectory, sentencePieceDirectory } from '../tokenizer/fixtures.ts';

describe.each([
  ['byte-level', byteLevelDirectory(), [[], 'hello']],
  ['SentencePiece', sentencePieceDirectory(), [['h', 'el'], 'lo']],
] as const)('a bad word of a %s vocabulary', (_, directory, [before, last]) => {
  const tokenizer = Tokenizer.fromDirectory(directory);
  const { tokenBytes } = tokenizer;
  const idOf = (spelling: string) => tokenizer.idOf(spelling)!;

  /** Returns the tokens that are forbidden next. */
  function forbiddenAfter(history: readonly string[]): string[] {
    const workspace = new SamplerWorkspace(tokenBytes.vocabularySize, new SimdKernel());
    const sampling = { ...NEUTRAL_SAMPLING, badWords: ['hello'] };
    const vocabulary = samplerVocabulary(directory, tokenBytes);
    const sampler = new Sampler(sampling, { seed: 1, prompt: 0, choice: 0 }, vocabulary, workspace);
    const tokens = new TokenHistory(Int32Array.from(history, idOf), 99);
    const row = sampler.process(new Float32Array(tokenBytes.vocabularySize), tokens, null, []);
    return [...row.keys()].filter((id) => row[id] === -Infinity).map((id) => tokenizer.spelling(id));
  }

  it('is forbidden within a word, without a space before it', () => {
    expect(forbiddenAfter(before)).toContain(last);
  });

  it('is forbidden after a space', () => {
    const ids = tokenizer.encode('h hello', { addSpecialTokens: false, parseSpecial: false });
    const [final = '', ...others] = ids.map((id) => tokenizer.spelling(id)).reverse();
    expect(forbiddenAfter(others.reverse())).toContain(final);
  });
});
