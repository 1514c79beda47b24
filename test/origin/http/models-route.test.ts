import { expect, test } from 'vitest';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

test('GET /models describes the served models', async () => {
  const { models } = (await (await origin.call('/models')).json()) as { models: unknown[] };
  const { vocabularySize } = origin.model;
  expect(models).toEqual([
    {
      id: 'tiny',
      created: 1_700_000_000,
      contextLength: 64,
      vocabularySize,
      infill: true,
      aliases: [],
      defaults: {},
      state: 'loaded',
    },
  ]);
});
