import fc from 'fast-check';
import { expect, it } from 'vitest';
import { measureSpeed } from '../../../../origin/hub/check/check.ts';
import { continueGreedily } from '../../../../origin/hub/check/greedy.ts';
import type { DecodeBatch } from '../../../../origin/model/model-runner.ts';
import { Driver } from '../../engine/support/engine-driver.ts';
import { ScriptedRunner } from '../../engine/support/scripted-runner.ts';
import { NEUTRAL, submission } from '../../engine/support/submissions.ts';
import { VOCABULARY } from '../../engine/support/vocabulary.ts';

const SHAPE = { vocabularySize: VOCABULARY, contextLength: 64, prefillChunk: 8 };
const GENERATED = 12;

/** A runner whose logits differ if a batch has only one row. */
class SingleRowDiffers extends ScriptedRunner {
  constructor(slots: number) {
    super({ ...SHAPE, slots, minRows: Math.min(2, slots) });
  }

  override decode(batch: DecodeBatch): Float32Array {
    const logits = super.decode(batch) as Float32Array;
    return batch.rows < this.shape.minRows ? logits.map((logit) => -logit) : logits;
  }
}

it('generates the same greedy tokens as the engine if a single row has other logits', async () => {
  const prompts = fc.array(fc.nat(VOCABULARY - 1), { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(prompts, fc.integer({ min: 1, max: 4 }), async (prompt, slots) => {
      const engine = new Driver(new SingleRowDiffers(slots));
      engine.submit(
        submission({
          requestId: 'one',
          prompts: [{ tokens: Int32Array.from(prompt), maxTokens: GENERATED }],
          sampling: { ...NEUTRAL, temperature: 0 },
          ignoreEos: true,
        }),
      );
      await engine.finish();
      const answer = engine
        .eventsOf('one')
        .flatMap((event) => (event.type === 'token' ? (event.ids ?? []) : []));
      expect(answer).toHaveLength(GENERATED);
      expect(await continueGreedily(new SingleRowDiffers(slots), prompt, GENERATED, new Set())).toEqual(
        answer,
      );
    }),
  );
});

it('times one sequence in the batches that the engine builds', async () => {
  const runner = new SingleRowDiffers(4);
  await measureSpeed(runner, [1, 2, 3], 5, () => 0);
  expect(runner.decodes.map(({ rows }) => rows)).toEqual([...Array(5).fill(2), ...Array(5).fill(4)]);
});
