import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import { FAMILIES } from '../../../origin/export/families/families.ts';
import { prefill } from '../../../origin/hub/greedy.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { differingPrompts, LOGIT_TOLERANCE, PREFILL_CHUNK } from '../../exporters/family-comparison.ts';
import { CASES, floatsOf, PROMPT } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'families-'));

describe('a model built from published weights', () => {
  it('is tested for every family', () => {
    const tested = new Set(CASES.map(({ name }) => name.split('-')[0]));
    const families = FAMILIES.flatMap(({ modelTypes, within = [] }) => [...modelTypes, ...within]);
    expect(families.filter((name) => !tested.has(name))).toEqual([]);
  });

  it.each(CASES.map((one) => [one.name, one] as const))(
    '%s has the logits of transformers',
    async (name, one) => {
      const directory = path.join(folder, name);
      await buildModel(hashedCheckpoint(one.config, one.tensors), { precision: 'fp32', directory });
      const options = { slots: 2, prefillChunk: PREFILL_CHUNK, threads: 1, kvLimitBytes: 2 ** 30 };
      const { runner } = await openModel({ directory, ...options });
      try {
        for (const { position, logits } of one.rows) {
          const computed = await prefill(runner, 0, PROMPT.slice(0, position + 1));
          expect(largestDifference(computed, floatsOf(logits)), `position ${position}`).toBeLessThanOrEqual(
            LOGIT_TOLERANCE,
          );
        }
        expect(await differingPrompts(runner, PROMPT, one.continuations)).toEqual([]);
      } finally {
        runner.dispose();
      }
    },
  );
});

/** NaN if any logit is not a number. */
const largestDifference = (computed: Float32Array, expected: Float32Array): number =>
  Math.max(...expected.map((logit, id) => Math.abs(logit - (computed[id] ?? Number.NaN))));
