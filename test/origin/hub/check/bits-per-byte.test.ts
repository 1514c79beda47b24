import { join } from 'node:path';
import { expect, it } from 'vitest';
import { measureText } from '../../../../origin/hub/check/bits-per-byte.ts';
import { MARKERS } from '../../../../origin/infill/families.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../../origin/tokenizer/tokenizer.ts';
import { float64Llama } from '../../../support/float64-llama.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { syntheticRunner } from '../../model/synthetic-runner.ts';

/** −log2 of the probability of each byte after the first of each window, by the float64 pass. */
function expectedBits(directory: string, bytes: readonly number[], window: number): number {
  const model = float64Llama.load(join(directory, 'model.onnx'));
  let bits = 0;
  for (let start = 0; start < bytes.length; start += window) {
    const part = bytes.slice(start, start + window);
    const rows = model.forward(part);
    for (const [at, token] of part.entries()) {
      if (at === 0) continue;
      const logits = rows[at - 1]!;
      const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);
      bits += (Math.log(sum) - logits[token]!) / Math.LN2;
    }
  }
  return bits;
}

it('measures the bits per byte of a text that is longer than a window', async () => {
  const { runner, directory } = await syntheticRunner({ contextLength: 64, vocabulary: 258 });
  writeByteTokenizer(directory, 258);
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  const text = 'A text of several windows, each of 64 bytes. '.repeat(3);
  const bytes = tokenizer.encode(text, { addSpecialTokens: false, parseSpecial: false });
  const measured = await measureText(runner, tokenizer, text);
  expect(measured.tokens).toBe(text.length - 3);
  expect(measured.bytes).toBe(text.length - 3);
  expect(measured.bitsPerByte * measured.bytes).toBeCloseTo(expectedBits(directory, bytes, 64), 2);
});

it('refuses a text without a token to predict', async () => {
  const { runner, directory } = await syntheticRunner({ vocabulary: 258 });
  writeByteTokenizer(directory, 258);
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  await expect(measureText(runner, tokenizer, 'a')).rejects.toThrow('no token to predict');
});
