import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { continueGreedily } from '../../../origin/hub/check/greedy.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { changesOfBits } from './compare.ts';

/** Compares a model that the builder made with what transformers computes, and its bits with each other. */

/** The greedy tokens after the first `length` tokens of the prompt. */
const continuationSchema = z.object({ length: z.int(), tokens: z.array(z.int()) });

const referenceSchema = z.object({ prompt: z.array(z.int()), continuations: z.array(continuationSchema) });

export interface FamilyComparison {
  /** Largest difference of a logit, over all positions of the longest prompt. */
  readonly maxDifference: number;
  /** Lengths of the prompts after which other tokens follow. */
  readonly wrong: readonly number[];
  /** What changes the bits of the logits. */
  readonly inexact: readonly string[];
}

/** Largest difference of a logit in float32. */
export const LOGIT_TOLERANCE = 1e-4;

const SLOTS = 8;
/** Shorter than the prompts, so that they have cached prefixes. */
export const PREFILL_CHUNK = 64;

const NEVER = new AbortController().signal;

/**
 * @param source directory that families.py wrote
 * @throws Error if the origin cannot open the model
 */
export async function compareFamily(directory: string, source: string): Promise<FamilyComparison> {
  const { prompt, continuations } = referenceSchema.parse(
    JSON.parse(readFileSync(join(source, 'reference.json'), 'utf8')),
  );
  const expected = new Float32Array(Uint8Array.from(readFileSync(join(source, 'logits.bin'))).buffer);
  const options = { slots: SLOTS, prefillChunk: PREFILL_CHUNK, threads: 1, kvLimitBytes: 2 ** 30 };
  const { runner } = await openModel({ directory, ...options });
  try {
    const maxDifference = await largestDifference(runner, prompt, expected);
    const wrong = await differingPrompts(runner, prompt, continuations);
    return { maxDifference, wrong, inexact: await changesOfBits(runner, prompt) };
  } finally {
    runner.dispose();
  }
}

/** @param expected logits [prompt, vocabulary] */
async function largestDifference(
  runner: ModelRunner,
  prompt: readonly number[],
  expected: Float32Array,
): Promise<number> {
  const { vocabularySize, prefillChunk } = runner.shape;
  let largest = 0;
  for (let start = 0; start < prompt.length; start += prefillChunk) {
    const tokens = Int32Array.from(prompt.slice(start, start + prefillChunk));
    const logitsAt = Int32Array.from(tokens.keys());
    const logits = await runner.prefill({ slot: 0, start, tokens, logitsAt }, NEVER);
    for (let i = 0; i < tokens.length * vocabularySize; i++) {
      const difference = Math.abs(logits[i]! - expected[start * vocabularySize + i]!);
      // NaN must not pass as small.
      if (!(difference <= largest)) largest = difference;
    }
  }
  return largest;
}

export async function differingPrompts(
  runner: ModelRunner,
  prompt: readonly number[],
  continuations: readonly z.infer<typeof continuationSchema>[],
): Promise<number[]> {
  const wrong: number[] = [];
  for (const { length, tokens } of continuations) {
    const generated = await continueGreedily(runner, prompt.slice(0, length), tokens.length, new Set());
    if (tokens.some((token, index) => token !== generated[index])) wrong.push(length);
  }
  return wrong;
}
