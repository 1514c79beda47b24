import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { requireSameStates } from '../../../origin/model/open/check-states.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import type { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { Driver, storeBytes } from '../../origin/engine/support/engine-driver.ts';
import { writeFamilyModel } from '../../origin/engine/support/family-model.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import { ordered, transcribe } from '../../origin/engine/support/transcript.ts';
import { onEachRunner } from './runner-tests.ts';
import type { RunnerCase } from './runners.ts';

/** Of each kind of state: windows, delta rules with one decay or many, state spaces, recurrences. */
const FAMILIES = ['lfm2', 'qwen3_5_text', 'kimi_linear', 'bamba', 'mamba2', 'recurrent_gemma'];

const SLOTS = 3;
const CHUNK = 16;

function computesStates(one: RunnerCase): void {
  describe.each(FAMILIES)('of %s', (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'continuo-states-'));
    const directory = join(folder, 'model');
    let tokenizer: Tokenizer;
    let runner: ModelRunner;
    beforeAll(async () => {
      tokenizer = await writeFamilyModel(directory, name, one.precision === 'float16' ? 'fp16' : 'fp32');
      runner = await one.open(directory, { slots: SLOTS, prefillChunk: CHUNK });
    });
    afterAll(() => {
      runner.dispose();
      rmSync(folder, { recursive: true, force: true });
    });

    it.skipIf(one.name === 'cpu')(
      'have the logits of the CPU after a text, and in rows that go on from copies',
      async () => {
        const onCpu = { directory, slots: 1, threads: 2, kvLimitBytes: 2 ** 30 };
        const openProcessor = async () => (await openModel(onCpu)).runner;
        await requireSameStates({ runner, deviceName: one.name }, 'model.onnx', openProcessor);
      },
    );

    it('give a chat after a cached prefix the bits of one that is computed anew', async () => {
      const { tokenBytes, eosIds } = tokenizer;
      const driver = (prefixStoreBytes: number) =>
        new Driver(runner, { prefixStoreBytes, tokenBytes, eosIds });
      const [stored, plain] = [driver(storeBytes(runner, 200) + 40 * runner.states!.bytes), driver(0)];
      const text = Int32Array.from({ length: 50 }, (_, at) => (7 * at + 3) % 256);
      for (const [at, length] of [40, 50, 50].entries()) {
        const request: Submission = submission({
          requestId: `${at}`,
          prompts: [{ tokens: text.slice(0, length), maxTokens: 10 }],
          sampling: { ...NEUTRAL, seed: 5 },
          topLogprobs: 5,
          ignoreEos: true,
        });
        for (const engine of [stored, plain]) {
          engine.submit({ ...request, cachePrompt: engine === stored });
          await engine.finish();
        }
        const [first, second] = [stored, plain].map((engine) =>
          ordered(transcribe(engine.eventsOf(request.requestId), 1)),
        );
        expect(first).toEqual(second);
      }
      expect(stored.engine.status.prefixStore?.restoredTokens).toBeGreaterThan(0);
    });
  });
}

onEachRunner('states', computesStates);
