import { availableParallelism } from 'node:os';
import type { StepReport, Submission } from '../../../origin/engine/messages.ts';
import { EngineClient, spawnEngineThread } from '../../../origin/engine/thread/engine-client.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { NEUTRAL } from '../../origin/engine/support/submissions.ts';
import { benchSubmission } from './engine-target.ts';
import { benchModels } from './models.ts';
import { SAMPLER_CONFIGURATIONS, type SamplerConfiguration } from './sampler-configurations.ts';
import { median } from './statistics.ts';

/**
 * Measures the sampler's share of a decode step by configuration, at batch 16 and a vocabulary of 151,936, in
 * the real engine thread. The weights are random, so the distributions are flatter than those of trained
 * models. Run on an idle machine: npx node test/tools/bench/sampler-share.ts
 */

const BATCH = 16;
const TOKENS = 40;
/** Warm-up steps, in which code is compiled and threads start. */
const WARM_UP = 5;

const directory = benchModels['152k-8bit']!.directory();
const tokenizer = Tokenizer.of(textsOf(directory));
const reports: StepReport[] = [];
const engine = new EngineClient({
  spawn: () =>
    spawnEngineThread({
      model: {
        directory,
        slots: BATCH,
        contextLength: 512,
        threads: availableParallelism(),
        kvLimitBytes: process.availableMemory(),
      },
      tokenBytes: tokenizer.tokenBytes,
      eosIds: tokenizer.eosIds,
      maxWaiting: BATCH,
    }),
  onSteps: (steps) => reports.push(...steps),
});

function finished(submission: Submission): Promise<void> {
  return new Promise((resolve, reject) => {
    const admission = engine.submit(submission, (events) => {
      for (const event of events) {
        if (event.type === 'done') resolve();
        else if (event.type === 'error') reject(new Error(event.message));
      }
    });
    admission.catch(reject);
  });
}

/** Median over the steps in which all sequences run: milliseconds of model and sampler, and its share. */
async function measure({ logprobs, ...sampling }: SamplerConfiguration) {
  reports.length = 0;
  const streams = Array.from({ length: BATCH }, (_, stream) => {
    const prompt = Array.from({ length: 32 }, (_, i) => 32 + ((7 * stream + 3 * i) % 200));
    const submission = benchSubmission({ prompt, maxTokens: TOKENS }, tokenizer);
    return finished({
      ...submission,
      topLogprobs: logprobs ?? null,
      sampling: { ...NEUTRAL, ...sampling, seed: stream + 1 },
    });
  });
  await Promise.all(streams);
  const full = reports.filter(({ kind, rows }) => kind === 'decode' && rows === BATCH).slice(WARM_UP);
  const share = full.map((step) => step.samplingMs / (step.modelMs + step.samplingMs + step.otherMs));
  return {
    model: median(full.map(({ modelMs }) => modelMs)),
    sampler: median(full.map(({ samplingMs }) => samplingMs)),
    share: 100 * median(share),
  };
}

await engine.start();
process.stdout.write(
  `${''.padEnd(42)}${'model ms'.padStart(10)}${'sampler ms'.padStart(12)}${'share'.padStart(9)}\n`,
);
await measure({ temperature: 1 });
for (const [name, configuration] of Object.entries(SAMPLER_CONFIGURATIONS)) {
  const { model, sampler, share } = await measure(configuration);
  const cells = [
    model.toFixed(1).padStart(10),
    sampler.toFixed(2).padStart(12),
    `${share.toFixed(1)} %`.padStart(9),
  ];
  process.stdout.write(`${name.padEnd(42)}${cells.join('')}\n`);
}
await engine.stop();
