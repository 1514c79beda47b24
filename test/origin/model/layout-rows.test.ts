import { describe, expect, it } from 'vitest';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { int8, merged, plain } from './layout-parts.ts';
import {
  decodeRows,
  modelOptions,
  prefillPrompt,
  randomTokens,
  temporaryDirectory,
} from './synthetic-runner.ts';

describe.each([
  { name: 'int8 with GroupQueryAttention', model: int8 },
  { name: 'past concatenated', model: plain },
  { name: 'past concatenated, int8', model: { ...plain, ...int8 } },
  { name: 'merged', model: merged },
  { name: 'merged, one token after a past', model: { ...merged, cachedBranch: 'one-token' } },
] as const)('rows are independent bit for bit: $name', ({ model }) => {
  const LENGTHS = [1, 7, 33, 90, 16];

  it('in any batch, in any slot, after copies and shorter prompts', async () => {
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, model);
    const slots = LENGTHS.length + 1;
    const { runner } = await openModel(modelOptions(directory, { slots, prefillChunk: 16 }));
    const alone: Float32Array[] = [];
    for (const [row, length] of LENGTHS.entries()) {
      await prefillPrompt(runner, 0, randomTokens(length, row));
      alone.push(...(await decodeRows(runner, 0, [{ token: row, position: length }])));
    }
    for (const [row, length] of LENGTHS.entries()) {
      await prefillPrompt(runner, 0, randomTokens(length, row));
      for (let step = 0; step < 3; step++)
        await decodeRows(runner, 0, [{ token: 9, position: length + step }]);
      runner.copy(0, row + 1, length);
    }
    const batch = LENGTHS.map((position, token) => ({ token, position }));
    for (let first = 0; first < batch.length; first++) {
      for (let end = first + 1; end <= batch.length; end++) {
        const together = await decodeRows(runner, first + 1, batch.slice(first, end));
        expect(together).toEqual(alone.slice(first, end));
      }
    }
    runner.dispose();
  });

  it('with any number of other requested positions', async () => {
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, model);
    const { runner } = await openModel(modelOptions(directory, { prefillChunk: 8 }));
    const tokens = randomTokens(16, 1);
    const at = async (wanted: readonly number[]) => {
      const never = new AbortController().signal;
      await runner.prefill(
        { slot: 1, start: 0, tokens: tokens.subarray(0, 8), logitsAt: new Int32Array() },
        never,
      );
      const chunk = { slot: 1, start: 8, tokens: tokens.subarray(8), logitsAt: Int32Array.from(wanted) };
      return (await runner.prefill(chunk, never)).slice();
    };
    const all = await at([0, 1, 2, 3, 4, 5, 6, 7]);
    for (const wanted of [[7], [0], [2, 5], []]) {
      const chosen = wanted.flatMap((i) => [...all.subarray(256 * i, 256 * (i + 1))]);
      expect(await at(wanted)).toEqual(Float32Array.from(chosen));
    }
    runner.dispose();
  });
});
