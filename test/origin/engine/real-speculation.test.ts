import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { NO_SPECULATION, type SpeculationSettings } from '../../../origin/engine/speculation.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import type { TokenLogprob } from '../../../shared/generation.ts';
import { Driver } from './support/engine-driver.ts';
import { NEUTRAL, submission } from './support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from './support/synthetic-engine.ts';
import { transcribe } from './support/transcript.ts';

/** On ONNX Runtime, speculation changes logprobs by rounding only. */
const ROUNDING = 1e-4;

let model: SyntheticEngine;
let runner: ModelRunner;

beforeAll(async () => {
  model = syntheticEngine({ quantization: 'none' }, { slots: 3, prefillChunk: 16 });
  ({ runner } = await openModel(model.data.model));
});
afterAll(() => {
  runner.dispose();
  model.remove();
});

const driver = (speculation: SpeculationSettings) =>
  new Driver(runner, {
    vocabulary: { tokenBytes: model.data.tokenBytes, encode: () => [] },
    eosIds: model.data.eosIds,
    speculation,
  });

async function run(engine: Driver, request: Submission): Promise<readonly TokenLogprob[]> {
  engine.submit(request);
  await engine.finish();
  return transcribe(engine.eventsOf(request.requestId), 1).choices.get(0)?.tokens ?? [];
}

/** Allows three tokens only, so that the text of a random model repeats itself. */
const request = (requestId: string, seed: number, prompt: readonly number[]) =>
  submission({
    requestId,
    prompts: [{ tokens: Int32Array.from(prompt), maxTokens: 120 }],
    sampling: { ...NEUTRAL, temperature: 0.5, allowedTokenIds: [65, 66, 67], seed },
    ignoreEos: true,
    topLogprobs: 3,
  });
const prompts = Array.from({ length: 8 }, (_, serial) =>
  Array.from({ length: 3 + 5 * serial }, (_, at) => 65 + ((at * (serial + 1)) % 3)),
);

/** Returns the number of equal tokens before the texts differ, and checks their logprobs. */
function agreeing(usual: readonly TokenLogprob[], other: readonly TokenLogprob[]): number {
  let count = 0;
  for (const [at, { id, logprob, topLogprobs }] of usual.entries()) {
    const its = other[at];
    expect(Math.abs((its?.topLogprobs?.[0]?.[2] ?? Number.NaN) - (topLogprobs?.[0]?.[2] ?? 0))).toBeLessThan(
      ROUNDING,
    );
    if (its?.id !== id) return count;
    expect(Math.abs((its.logprob ?? Number.NaN) - (logprob ?? 0))).toBeLessThan(ROUNDING);
    count++;
  }
  return count;
}

describe('on a real fp32 model', () => {
  it('speculation gives the tokens of the plain run, and its logprobs except for rounding', async () => {
    const speculating = driver({ maxTokens: 8, maxRows: 1 });
    let same = 0;
    for (const [serial, prompt] of prompts.entries()) {
      const asked = request(`${serial}`, serial, prompt);
      same += agreeing(await run(driver(NO_SPECULATION), asked), await run(speculating, asked));
    }
    const steps = speculating.reports.flatMap((report) => (report.type === 'step' ? report.reports : []));
    const accepted = steps
      .filter(({ kind }) => kind === 'decode')
      .reduce((sum, { tokens }) => sum + tokens - 1, 0);
    expect(accepted).toBeGreaterThan(100);
    expect(same).toBeGreaterThan(0.9 * 120 * prompts.length);
  });
});
