import { setImmediate } from 'node:timers/promises';
import type { Submission } from '../../../origin/engine/messages.ts';
import { samplerThreads } from '../../../origin/engine/thread/sampler-threads.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import type { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import { SamplerPool } from '../../../origin/sampling/pool/sampler-pool.ts';
import type { SamplingParameters } from '../../../shared/sampling.ts';
import { Driver } from '../../origin/engine/support/engine-driver.ts';
import { grammarOf } from '../../origin/engine/support/positional-grammar.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import { transcribe } from '../../origin/engine/support/transcript.ts';
import { changedRunner } from './runners.ts';

export const SPARSE_THREADS = 8;

const TOKENS = 40;

type Sampling = Partial<SamplingParameters> & Pick<Partial<Submission>, 'constraint'>;

const SAMPLINGS: Readonly<Record<string, Sampling>> = {
  greedy: { temperature: 0 },
  'temperature 1': { temperature: 1 },
  'temperature 0.7, top-p 0.9': { temperature: 0.7, topP: 0.9 },
  'top-k 40, top-p 0.95, min-p 0.01': { topK: 40, topP: 0.95, minP: 0.01 },
  'temperature 0.1, as of logits that are ten times as large': { temperature: 0.1, topP: 0.95 },
  logit_bias: {
    logitBias: [
      [7, 5],
      [9000, 8],
      [120, -100],
    ],
  },
  penalties: { temperature: 0.7, frequencyPenalty: 1, presencePenalty: 0.5, repetitionPenalty: 1.2 },
  allowed_token_ids: { allowedTokenIds: [3, 500, 501, 9000] },
  'a grammar that allows every second id': { temperature: 1, constraint: 'every second id' },
};

/** Compares the tokens that an engine draws from sparse rows with those from whole rows of the same runs. */
export async function sparseTokens(runner: ModelRunner, kernel: SimdKernel): Promise<Record<string, string>> {
  const { slots, vocabularySize } = runner.shape;
  const answer: Record<string, string> = {};
  const pool = new SamplerPool(kernel, vocabularySize, samplerThreads(SPARSE_THREADS)!, slots);
  const everySecond = Array.from({ length: vocabularySize / 2 }, (_, index) => 2 * index);
  const grammar = grammarOf(Array<readonly number[]>(TOKENS).fill(everySecond), vocabularySize);
  for (const [name, { constraint = null, ...sampling }] of Object.entries(SAMPLINGS)) {
    const draw = async (one: ModelRunner) => {
      const driver = new Driver(one, {
        kernel,
        pool,
        tokenBytes: plainVocabulary(vocabularySize),
        eosIds: [],
        compile: () => Promise.resolve(grammar),
      });
      for (let request = 0; request < slots; request++) {
        const prompts = [{ tokens: Int32Array.of(1, 2, 3 + request), maxTokens: TOKENS }];
        const ofRequest = { ...NEUTRAL, ...sampling, seed: request };
        driver.submit(
          submission({
            requestId: `${request}`,
            prompts,
            sampling: ofRequest,
            constraint,
            ignoreEos: true,
            cachePrompt: false,
          }),
        );
      }
      // The grammar is compiled.
      await setImmediate();
      await driver.finish();
      return Array.from({ length: slots }, (_, request) => {
        const { choices } = transcribe(driver.eventsOf(`${request}`), 1);
        return String(choices.get(0)?.ids);
      });
    };
    const [sparse, whole] = [await draw(runner), await draw(changedRunner(runner, { sparse: null }))];
    const same = sparse.filter((ids, request) => ids === whole[request]).length;
    answer[name] = `${same} of ${slots} sequences of ${TOKENS} tokens are the same`;
  }
  return answer;
}

/** Each token is the letter a. */
export const plainVocabulary = (vocabularySize: number) => ({
  vocabularySize,
  bytes: new Uint8Array(vocabularySize).fill(97),
  offsets: Uint32Array.from({ length: vocabularySize + 1 }, (_, id) => id),
  special: new Uint8Array(vocabularySize),
});
