import { continueGreedily } from '../../origin/hub/greedy.ts';
import type { ModelRunner } from '../../origin/model/model-runner.ts';

/** As in transformers_rate.py. */
const PROMPT = 32;
const GENERATED = 16;

/** The likeliest continuation of a fixed prompt: the same weights give the same one, whoever computes it. */
export function greedyStart(runner: ModelRunner): Promise<number[]> {
  const { vocabularySize } = runner.shape;
  const prompt = Array.from({ length: PROMPT }, (_, at) => (at * 31 + 7) % vocabularySize);
  return continueGreedily(runner, prompt, GENERATED, new Set());
}

/** One line: how much of two continuations is the same. */
export function compareStarts(own: readonly number[], other: readonly number[]): string {
  const parts = own.findIndex((id, at) => id !== other[at]);
  return parts < 0
    ? `the same ${own.length} greedy tokens`
    : `greedy tokens part after ${parts} of ${own.length}`;
}
