import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import { FAMILIES } from '../../../origin/export/families/families.ts';
import { prefill } from '../../../origin/hub/check/greedy.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { differingPrompts, LOGIT_TOLERANCE, PREFILL_CHUNK } from '../../tools/exporters/family-comparison.ts';
import { CASES, type FamilyCase, floatsOf, PROMPT } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';

const folder = newDirectory();

const NAMES = CASES.map(({ name }) => name);

describe('a model built from published weights', () => {
  it('is tested for every family', () => {
    const textType = (text: unknown) => (text as { model_type?: string } | undefined)?.model_type;
    const tested = new Set(
      CASES.flatMap(({ name, config }) => [name.split('-')[0], textType(config.text_config)]),
    );
    const families = FAMILIES.flatMap(({ modelTypes, within = [] }) => [...modelTypes, ...within]);
    expect(families.filter((name) => !tested.has(name))).toEqual([]);
  });

  it.each(NAMES)('%s has the logits of transformers', async (name) => {
    await withBuilt(name, 'fp32', async (runner, { rows, continuations }) => {
      for (const { position, logits } of rows) {
        const computed = await prefill(runner, 0, PROMPT.slice(0, position + 1));
        expect(largestDifference(computed, floatsOf(logits)), `position ${position}`).toBeLessThanOrEqual(
          LOGIT_TOLERANCE,
        );
      }
      expect(await differingPrompts(runner, PROMPT, continuations)).toEqual([]);
    });
  });

  it.each(['llama', 'mixtral', 'qwen2_moe'])('%s in fp16 has nearly these logits', async (name) => {
    await withBuilt(name, 'fp16', async (runner, { rows }) => {
      const { position, logits } = rows.at(-1)!;
      const computed = await prefill(runner, 0, PROMPT.slice(0, position + 1));
      expect(largestDifference(computed, floatsOf(logits))).toBeLessThan(0.02);
    });
  });
});

async function withBuilt(
  name: string,
  precision: 'fp32' | 'fp16',
  check: (runner: ModelRunner, one: FamilyCase) => Promise<void>,
): Promise<void> {
  const one = CASES.find((each) => each.name === name)!;
  const directory = path.join(folder, `${name}-${precision}`);
  await buildModel(hashedCheckpoint(one.config, one.tensors), { precision, directory });
  const options = { slots: 2, prefillChunk: PREFILL_CHUNK, threads: 1, kvLimitBytes: 2 ** 30 };
  const { runner } = await openModel({ directory, ...options });
  try {
    await check(runner, one);
  } finally {
    runner.dispose();
  }
}

/** NaN if any logit is not a number. */
const largestDifference = (computed: Float32Array, expected: Float32Array): number =>
  Math.max(...expected.map((logit, id) => Math.abs(logit - (computed[id] ?? Number.NaN))));
