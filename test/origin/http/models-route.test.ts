import { expect, test } from 'vitest';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

test('GET /models describes the served models, and announces what a request may contain', async () => {
  const { models, capabilities } = (await (await origin.call('/models')).json()) as Record<string, unknown>;
  expect(capabilities).toEqual(
    expect.arrayContaining(['prompts', 'sampling.topK', 'constraint.json_schema', 'constraint.gbnf']),
  );
  const { vocabularySize } = origin.model;
  expect(models).toEqual([
    {
      id: 'tiny',
      fingerprint: expect.stringMatching(/^fp_[0-9a-f]{16}$/),
      created: 1_700_000_000,
      contextLength: 64,
      vocabularySize,
      infill: true,
      tokenHealing: true,
      aliases: [],
      defaults: {},
      state: 'loaded',
    },
  ]);
});
