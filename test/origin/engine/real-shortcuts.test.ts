import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { NO_SHORTCUTS, type Shortcuts } from '../../../origin/engine/shortcuts.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import type { TokenLogprob } from '../../../shared/generation.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';
import { Driver } from './support/driver.ts';
import { grammarOf } from './support/placed-grammar.ts';
import { submission } from './support/submissions.ts';
import { type SyntheticEngine, syntheticEngine } from './support/synthetic-engine.ts';
import { transcribe } from './support/transcript.ts';

/** On ONNX Runtime itself shortcuts change logprobs by rounding, and by nothing else. */
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

/** Two tokens to choose from, then nine that are forced, and so on. */
const places = Array.from({ length: 60 }, (_, at) => (at % 10 === 0 ? [65, 66] : [65 + (at % 26)]));

const driver = (shortcuts: Shortcuts) =>
  new Driver(runner, {
    compile: () => grammarOf(places, model.vocabularySize),
    vocabulary: { tokenBytes: model.data.tokenBytes, encode: () => [] },
    eosIds: model.data.eosIds,
    shortcuts,
  });

async function run(engine: Driver, request: Submission): Promise<readonly TokenLogprob[]> {
  engine.submit(request);
  await engine.finish();
  return transcribe(engine.eventsOf(request.requestId), 1).choices.get(0)?.tokens ?? [];
}

/** Few tokens to choose from, so that the text of a random model repeats itself. */
const request = (requestId: string, seed: number, prompt: readonly number[]) =>
  submission({
    requestId,
    prompts: [{ tokens: Int32Array.from(prompt), maxTokens: 120 }],
    sampling: { ...NEUTRAL_SAMPLING, temperature: 0.5, allowedTokenIds: [65, 66, 67] },
    seed,
    ignoreEos: true,
    logprobs: 3,
  });
const prompts = Array.from({ length: 8 }, (_, serial) =>
  Array.from({ length: 3 + 5 * serial }, (_, at) => 65 + ((at * (serial + 1)) % 3)),
);

/** How many tokens, alternatives included, are the same and agree; none may disagree before the texts part. */
function agreeing(usual: readonly TokenLogprob[], other: readonly TokenLogprob[]): number {
  let count = 0;
  for (const [at, { id, logprob, top }] of usual.entries()) {
    const its = other[at];
    expect(Math.abs((its?.top?.[0]?.[2] ?? Number.NaN) - (top?.[0]?.[2] ?? 0))).toBeLessThan(ROUNDING);
    if (its?.id !== id) return count;
    expect(Math.abs((its.logprob ?? Number.NaN) - (logprob ?? 0))).toBeLessThan(ROUNDING);
    count++;
  }
  return count;
}

describe('on a real fp32 model', () => {
  it('speculation gives the tokens and, but for rounding, the logprobs of the plain run', async () => {
    const speculating = driver({ ...NO_SHORTCUTS, drafts: 8 });
    let same = 0;
    for (const [serial, prompt] of prompts.entries()) {
      const asked = request(`${serial}`, serial, prompt);
      same += agreeing(await run(driver(NO_SHORTCUTS), asked), await run(speculating, asked));
    }
    const steps = speculating.reports.flatMap((report) => (report.type === 'step' ? report.reports : []));
    const accepted = steps
      .filter(({ kind }) => kind === 'decode')
      .reduce((sum, { tokens }) => sum + tokens - 1, 0);
    expect(accepted).toBeGreaterThan(100);
    expect(same).toBeGreaterThan(0.9 * 120 * prompts.length);
  });

  it('a conversation that takes up generated text goes on as one that does not', async () => {
    const reusing = driver({ ...NO_SHORTCUTS, cacheGenerated: true });
    let same = 0;
    for (const [serial, prompt] of prompts.entries()) {
      const ids = (await run(reusing, request(`first ${serial}`, serial, prompt))).map(({ id }) => id);
      const next = request(`next ${serial}`, serial, [...prompt, ...ids, 68]);
      same += agreeing(await run(driver(NO_SHORTCUTS), next), await run(reusing, next));
      expect(reusing.eventsOf(next.requestId)[0]).toMatchObject({
        type: 'started',
        cachedTokens: 16 * Math.floor((prompt.length + 119) / 16),
      });
    }
    expect(same).toBeGreaterThan(0.9 * 120 * prompts.length);
  });

  it('forced tokens differ from the plain run by rounding alone, and not at all by company', async () => {
    const shortcuts = { ...NO_SHORTCUTS, forcedTokens: true };
    const requests = prompts.map((prompt, serial) => ({
      ...request(`${serial}`, serial, prompt),
      sampling: { ...NEUTRAL_SAMPLING, temperature: 0.5 },
      constraint: '',
    }));
    const answers = async (engine: Driver, asked: readonly Submission[]) => {
      for (const one of asked) engine.submit(one);
      await new Promise(setImmediate);
      await engine.finish();
      return asked.map((one) => transcribe(engine.eventsOf(one.requestId), 1).choices.get(0)?.tokens ?? []);
    };
    const together = driver(shortcuts);
    const inCompany = await answers(together, requests);
    for (const [index, asked] of requests.entries()) {
      const [alone] = await answers(driver(shortcuts), [asked]);
      expect(inCompany[index]).toEqual(alone);
      const [plain] = await answers(driver(NO_SHORTCUTS), [asked]);
      expect(agreeing(plain ?? [], alone ?? [])).toBe(places.length);
    }
    const steps = together.reports.flatMap((report) => (report.type === 'step' ? report.reports : []));
    expect(steps.filter(({ kind, tokens }) => kind === 'decode' && tokens === 10).length).toBeGreaterThan(40);
  });
});
