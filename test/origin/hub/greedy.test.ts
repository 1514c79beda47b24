import fc from 'fast-check';
import { expect, it } from 'vitest';
import { continueGreedily } from '../../../origin/hub/greedy.ts';
import { measureSpeed } from '../../../origin/hub/speed.ts';
import type { DecodeBatch } from '../../../origin/model/model-runner.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { VOCABULARY } from '../engine/support/alphabet.ts';
import { Driver } from '../engine/support/driver.ts';
import { ScriptedRunner } from '../engine/support/scripted-runner.ts';
import { submission } from '../engine/support/submissions.ts';

const SHAPE = { vocabularySize: VOCABULARY, contextLength: 64, prefillChunk: 8 };
const GENERATED = 12;

/** A runner whose kernel for a lone row computes something else. */
class LoneRowsDiffer extends ScriptedRunner {
  constructor(slots: number) {
    super({ ...SHAPE, slots, minRows: Math.min(2, slots) });
  }

  override decode(batch: DecodeBatch): Float32Array {
    const logits = super.decode(batch) as Float32Array;
    return batch.rows < this.shape.minRows ? logits.map((logit) => -logit) : logits;
  }
}

it('continues a prompt as the engine does, whatever a lone row would be given', async () => {
  const prompts = fc.array(fc.nat(VOCABULARY - 1), { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(prompts, fc.integer({ min: 1, max: 4 }), async (prompt, slots) => {
      const engine = new Driver(new LoneRowsDiffer(slots));
      engine.submit(
        submission({
          requestId: 'one',
          prompts: [{ tokens: Int32Array.from(prompt), maxTokens: GENERATED }],
          sampling: { ...NEUTRAL_SAMPLING, temperature: 0 },
          ignoreEos: true,
        }),
      );
      await engine.finish();
      const answer = engine
        .eventsOf('one')
        .flatMap((event) => (event.type === 'token' ? (event.ids ?? []) : []));
      expect(answer).toHaveLength(GENERATED);
      expect(await continueGreedily(new LoneRowsDiffer(slots), prompt, GENERATED, new Set())).toEqual(answer);
    }),
  );
});

it('times a lone sequence in the runs that it gets from the engine', async () => {
  const runner = new LoneRowsDiffer(4);
  await measureSpeed(runner, [1, 2, 3], 5, () => 0);
  expect(runner.decodes.map(({ rows }) => rows)).toEqual([...Array(5).fill(2), ...Array(5).fill(4)]);
});
