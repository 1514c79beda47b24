import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { measureBatchInvariance } from '../../../origin/hub/check/batch-invariance.ts';
import { continueGreedily, prefill } from '../../../origin/hub/check/greedy.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { sameBits } from '../../../origin/model/open/row-probe.ts';

/** Compares the greedy tokens of this origin with those of a reference, and its bits with each other. */

const cases = z.array(
  z.object({
    prompt: z.array(z.int()),
    tokens: z.array(z.int()),
    /** Smallest difference between the two largest logits over all tokens. */
    margin: z.number(),
  }),
);

export interface Comparison {
  /** Prompts with the same tokens, of all that fit the context. */
  readonly equal: number;
  readonly prompts: number;
  /** Lengths of the prompts whose tokens differ although every margin is above `rounding`. */
  readonly wrong: readonly number[];
  /** What changes the bits of the logits: a batch of eight, or a cached prefix. */
  readonly inexact: readonly string[];
  /** Positions of a slot. */
  readonly context: number;
}

const SLOTS = 8;
const STEPS = 2;

/**
 * @param file JSON that export.py wrote
 * @param rounding largest difference of two logits that rounding may reverse
 * @throws Error if the origin cannot open the model
 */
export async function compareTokens(directory: string, file: string, rounding: number): Promise<Comparison> {
  const { runner } = await openModel({ directory, slots: SLOTS, threads: 1, kvLimitBytes: 2 ** 30 });
  try {
    const context = runner.shape.contextLength;
    const fitting = cases
      .parse(JSON.parse(readFileSync(file, 'utf8')))
      .filter(({ prompt, tokens }) => prompt.length + tokens.length <= context);
    const wrong: number[] = [];
    let equal = 0;
    for (const { prompt, tokens, margin } of fitting) {
      const generated = await continueGreedily(runner, prompt, tokens.length, new Set());
      if (tokens.every((token, index) => token === generated[index])) equal += 1;
      else if (margin > rounding) wrong.push(prompt.length);
    }
    const inexact = await changesOfBits(runner, fitting.at(-1)?.prompt ?? []);
    return { equal, prompts: fitting.length, wrong, inexact, context };
  } finally {
    runner.dispose();
  }
}

export async function changesOfBits(runner: ModelRunner, prompt: readonly number[]): Promise<string[]> {
  const { identical } = await measureBatchInvariance(runner, prompt, STEPS);
  const cold = await prefill(runner, 0, prompt);
  const { prefillChunk } = runner.shape;
  const cached = Math.floor((prompt.length - 1) / prefillChunk) * prefillChunk;
  const state = new Uint8Array(runner.states?.bytes ?? 0);
  if (runner.states) {
    // A slot has the state of the position where it is, so it goes there again.
    await prefill(runner, 0, prompt.slice(0, cached));
    runner.states.read(0, cached, state);
  }
  runner.copy(0, 1, cached);
  runner.states?.write(1, cached, state);
  const warm = await prefill(runner, 1, prompt, cached);
  return [identical ? [] : 'a batch of 8', sameBits(cold, warm) ? [] : 'a cached prefix'].flat();
}
