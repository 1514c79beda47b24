import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Healing } from '../../../../origin/engine/text/healing.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import type { ModelRunner } from '../../../../origin/model/model-runner.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { healingStart } from '../../../../origin/request/token-healing.ts';
import { SimdKernel } from '../../../../origin/sampling/kernel/simd-kernel.ts';
import { firstTokens } from '../../../../origin/tokenizer/token-bytes.ts';
import { Tokenizer } from '../../../../origin/tokenizer/tokenizer.ts';
import { runs } from '../../../support/random.ts';
import { enumerateNextBytes, nextBytesOf } from '../support/healing-oracle.ts';

const ROOT = path.join(import.meta.dirname, '../../../..');
const DIRECTORY = path.join(ROOT, 'origin/models/continuo-mini');
const PARSED = { addSpecialTokens: true, parseSpecial: true };

/** Sentences of the documentation, so that the texts are English, code and punctuation. */
const TEXTS = readdirSync(path.join(ROOT, 'docs'))
  .filter((file) => file.endsWith('.md'))
  .flatMap((file) => readFileSync(path.join(ROOT, 'docs', file), 'utf8').split('\n'))
  .filter((line) => line.length >= 50)
  .map((line) => line.slice(0, 50));

describe('token healing on the built-in model', () => {
  let runner: ModelRunner;
  const tokenizer = Tokenizer.of(textsOf(DIRECTORY));

  beforeAll(async () => {
    const kernel = new SimdKernel();
    const options = { directory: DIRECTORY, slots: 2, contextLength: 64, threads: 1, kvLimitBytes: 2 ** 30 };
    ({ runner } = await openModel({ ...options, prefillChunk: 64 }, (length) => kernel.allocate(length)));
  });
  afterAll(() => runner.dispose());

  /** Returns the rows of the positions from `first` on. */
  async function rowsFrom(tokens: Int32Array, first: number): Promise<(length: number) => Float32Array> {
    const { vocabularySize } = runner.shape;
    const logitsAt = Int32Array.from({ length: tokens.length - first }, (_, at) => first + at);
    const flat = await runner.prefill({ slot: 0, start: 0, tokens, logitsAt }, new AbortController().signal);
    const rows = flat.slice(0, logitsAt.length * vocabularySize);
    return (length) =>
      rows.subarray((length - 1 - first) * vocabularySize, (length - first) * vocabularySize);
  }

  it('equals an enumeration of all tokens for prompts cut at every byte', async () => {
    const tokenBytes = firstTokens(tokenizer.tokenBytes, runner.shape.vocabularySize);
    const count = runs(5);
    let healed = 0;
    let largest = 0;
    for (let index = 0; index < count; index++) {
      const text = TEXTS[Math.floor((index * TEXTS.length) / count)]!;
      for (let cut = 1; cut <= text.length; cut++) {
        const prompt = text.slice(0, cut);
        if (!prompt.isWellFormed()) continue;
        const tokens = Int32Array.from(tokenizer.encode(prompt, PARSED));
        const from = tokens.length > 60 ? null : healingStart(tokens, 0, tokenBytes);
        if (from === null) continue;
        healed++;
        const some = await rowsFrom(tokens, from - 1);
        const healing = new Healing(tokens, from);
        for (let at = from; at < tokens.length; at++) healing.add(some(at));
        const steps = healing.steps(tokenBytes, () => true);
        const actual = nextBytesOf(steps, some(tokens.length), tokenBytes);
        const expected = enumerateNextBytes(tokens, 8, await rowsFrom(tokens, 0), tokenBytes);
        for (const byte of new Set([...actual.keys(), ...expected.keys()])) {
          largest = Math.max(largest, Math.abs((actual.get(byte) ?? 0) - (expected.get(byte) ?? 0)));
        }
      }
    }
    expect(healed).toBeGreaterThan(30 * count);
    expect(largest).toBeLessThan(1e-5);
  });
});
