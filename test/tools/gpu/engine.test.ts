import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Driver } from '../../origin/engine/support/engine-driver.ts';
import { NEUTRAL, submission } from '../../origin/engine/support/submissions.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { onEachRunner, syntheticRunner } from './runner-tests.ts';
import type { RunnerCase } from './runners.ts';

/** Runs the engine on every available provider: more requests than slots, shared prompts, choices, aborts. */

const SLOTS = 4;
const CHUNK = 16;
const REQUESTS = 12;
const GREEDY = { ...NEUTRAL, temperature: 0 };

/** Every second prompt shares a prefix with the first, so that prefixes are copied between slots. */
function promptOf(request: number): Int32Array {
  const shared = 3 * CHUNK + 2;
  const length = shared + (request % 5) * 3;
  const seed = request % 2;
  return Int32Array.from({ length }, (_, at) =>
    at < shared ? (7 * at + 31 * seed) % 256 : (at * request + 5) % 256,
  );
}

function answersAreTheModels(one: RunnerCase): void {
  const opened = syntheticRunner(one, { slots: SLOTS, prefillChunk: CHUNK });

  it('greedy requests get the likeliest tokens of a forward pass in doubles, whoever is given up beside them', async () => {
    const { model, runner } = opened;
    const { tokenBytes, eosIds } = model.data;
    const engine = new Driver(runner, { tokenBytes, eosIds });
    for (let request = 0; request < REQUESTS; request++) {
      const prompts = [{ tokens: promptOf(request), maxTokens: 12 }];
      const choices = 1 + (request % 3);
      engine.submit(
        submission({ requestId: `${request}`, prompts, choices, sampling: GREEDY, ignoreEos: true }),
      );
    }
    const isGivenUp = (request: number) => request % 4 === 3;
    for (let step = 0; step < 9; step++) await engine.step();
    for (let request = 0; request < REQUESTS; request++) {
      if (isGivenUp(request)) engine.engine.abort(`${request}`);
    }
    await engine.finish();

    const reference = float64Llama.load(join(model.data.model.directory, 'model.onnx'));
    for (let request = 0; request < REQUESTS; request++) {
      if (isGivenUp(request)) continue;
      const prompt = promptOf(request);
      const ids = engine
        .eventsOf(`${request}`)
        .flatMap((event) => (event.type === 'token' && event.choice === 0 ? (event.ids ?? []) : []));
      expect(ids).toHaveLength(12);
      const logits = reference.forward([...prompt, ...ids]);
      for (const [index, id] of ids.entries()) {
        const row = logits[prompt.length - 1 + index]!;
        expect(row[id]).toBeGreaterThan(Math.max(...row) - 2 * one.tolerance);
      }
    }
  });
}

function scoresAreTheModels(one: RunnerCase): void {
  const opened = syntheticRunner(one, { slots: SLOTS, prefillChunk: CHUNK });

  it('tokens of prompts get the logprobs and ranks of a forward pass in doubles', async () => {
    const { model, runner } = opened;
    const { tokenBytes, eosIds } = model.data;
    const engine = new Driver(runner, { tokenBytes, eosIds });
    const prompts = Array.from({ length: REQUESTS }, (_, request) => promptOf(request));
    for (const [request, tokens] of prompts.entries()) {
      const scored = { promptTopLogprobs: 4, echo: true, prompts: [{ tokens, maxTokens: 0 }] };
      engine.submit(submission({ requestId: `${request}`, ...scored }));
    }
    await engine.finish();

    const reference = float64Llama.load(join(model.data.model.directory, 'model.onnx'));
    for (const [request, tokens] of prompts.entries()) {
      const rows = reference.forward([...tokens]);
      const event = engine.eventsOf(`${request}`).find(({ type }) => type === 'prompt');
      const scores = event?.type === 'prompt' ? event.logprobs! : [];
      expect(scores).toHaveLength(tokens.length);
      for (const [at, { id, logprob, topLogprobs }] of scores.entries()) {
        expect(id).toBe(tokens[at]);
        if (at === 0) continue;
        const row = rows[at - 1]!;
        const normalizer = Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0));
        const difference = Math.abs(logprob! - (row[id]! - normalizer));
        expect(difference).toBeLessThan(2 * one.tolerance);
        const fourth = [...row].sort((a, b) => b - a)[3]!;
        for (const [listed] of topLogprobs!) expect(row[listed]).toBeGreaterThan(fourth - 2 * one.tolerance);
      }
    }
  });
}

onEachRunner('an engine', (one) => {
  answersAreTheModels(one);
  scoresAreTheModels(one);
});
