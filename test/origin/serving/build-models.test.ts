import { expect, test } from 'vitest';
import type { ModelSettings } from '../../../origin/config/model-settings.ts';
import { buildModels } from '../../../origin/serving/build-models.ts';

test('a build that cannot start makes its model faulty, and the others are served', async () => {
  const source = { model: 'owner/name', precision: null, adapter: null, folder: '/does/not/exist' };
  const settings = (name: string, of: typeof source | null) =>
    ({ name, source: of, engine: { device: { provider: 'cpu' } } }) as ModelSettings;
  const set = {
    models: [settings('built', source), settings('there', null)],
    limits: { mainBytes: 0, cardBytes: 0 },
  };
  const { models, faulty } = await buildModels(set, () => {});
  expect(models.map(({ name }) => name)).toEqual(['there']);
  expect(faulty).toMatchObject([
    { settings: { name: 'built' }, reason: expect.stringMatching(/^the build cannot start: .*ENOENT/) },
  ]);
});
