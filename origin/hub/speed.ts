import type { ModelRunner } from '../model/model-runner.ts';
import { decode, prefill } from './greedy.ts';

/** How fast a model runs here; single short runs, good to tell 10 tokens/s from 100. */

export interface Speed {
  /** Tokens per second of a prompt. */
  readonly prefill: number;
  /** Tokens per second of one sequence that is alone. */
  readonly decode: number;
  /** Tokens per second of all slots together. */
  readonly batch: number;
}

/** @param now Milliseconds, monotonic */
export async function measureSpeed(
  runner: ModelRunner,
  tokens: readonly number[],
  steps: number,
  now: () => number,
): Promise<Speed> {
  const { slots } = runner.shape;
  const timed = async (count: number, work: () => Promise<unknown>): Promise<number> => {
    const start = now();
    await work();
    return (1000 * count) / Math.max(now() - start, Number.EPSILON);
  };
  const decodeAll = async (rows: number) => {
    for (let step = 0; step < steps; step += 1) {
      const row = { token: tokens[step % tokens.length]!, position: tokens.length + step };
      await decode(runner, 0, Array<typeof row>(rows).fill(row), () => tokens.length);
    }
  };
  const prefillRate = await timed(tokens.length, () => prefill(runner, 0, tokens));
  for (let slot = 1; slot < slots; slot += 1) runner.copy(0, slot, tokens.length);
  return {
    prefill: prefillRate,
    decode: await timed(steps, () => decodeAll(1)),
    batch: await timed(steps * slots, () => decodeAll(slots)),
  };
}
