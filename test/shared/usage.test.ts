import { expect, test } from 'vitest';
import type { GenerationEvent } from '../../shared/generation.ts';
import { UsageTally } from '../../shared/usage.ts';

const accepted: GenerationEvent = { type: 'accepted', model: 'm', promptTokens: [600, 500, 400] };
const started = (prompt: number): GenerationEvent => ({
  type: 'started',
  prompt,
  cachedTokens: 10,
  queueMs: 0,
});

test('counts only the prompts whose computation has begun, so that a failure bills no others', () => {
  const tally = new UsageTally(() => 0);
  tally.add(accepted);
  expect(tally.usage.promptTokens).toBe(0);
  tally.add(started(1));
  expect(tally.usage).toEqual({ promptTokens: 500, cachedTokens: 10, completionTokens: 0 });
  for (const prompt of [1, 0, 2]) tally.add(started(prompt));
  expect(tally.usage.promptTokens).toBe(1_500);
});
