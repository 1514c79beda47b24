import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { continueGreedily } from '../../origin/hub/greedy.ts';
import { openModel } from '../../origin/model/open/open-model.ts';

/** Compares the greedy tokens of this origin with those of a reference. */

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
  /** Positions of a slot. */
  readonly context: number;
}

/**
 * @param file JSON that export.py wrote
 * @param rounding largest difference of two logits that rounding may reverse
 * @throws Error if the origin cannot open the model
 */
export async function compareTokens(directory: string, file: string, rounding: number): Promise<Comparison> {
  const { runner } = await openModel({ directory, slots: 2, threads: 1, kvLimitBytes: 2 ** 30 });
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
    return { equal, prompts: fitting.length, wrong, context };
  } finally {
    runner.dispose();
  }
}
