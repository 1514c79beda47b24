import { continueGreedily } from '../../../origin/hub/check/greedy.ts';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';

/** As in transformers_rate.py. */
const PROMPT = 32;
const GENERATED = 16;
/** Positions that `greedyStart` needs. */
export const GREEDY_LENGTH = PROMPT + GENERATED;

/** Returns the greedy continuation of a fixed prompt. It depends on the weights only, up to rounding. */
export function greedyStart(runner: ModelRunner): Promise<number[]> {
  const { vocabularySize } = runner.shape;
  const prompt = Array.from({ length: PROMPT }, (_, at) => (at * 31 + 7) % vocabularySize);
  return continueGreedily(runner, prompt, GENERATED, new Set());
}

/** Returns one line that says how many leading tokens two continuations share. */
export function compareStarts(own: readonly number[], other: readonly number[]): string {
  const differs = own.findIndex((id, at) => id !== other[at]);
  return differs < 0
    ? `the same ${own.length} greedy tokens`
    : `greedy tokens differ after ${differs} of ${own.length}`;
}
