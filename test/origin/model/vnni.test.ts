import { expect, it } from 'vitest';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { overflowWarning } from '../../../origin/model/open/overflow-warning.ts';
import { hasVnni } from '../../../origin/model/ort/vnni.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { modelOptions, temporaryDirectory } from './synthetic-runner.ts';

it.each([
  {
    graph: 'a merged decoder',
    couplesRows: true,
    useCacheBranch: 'use_cache_branch',
    vnni: false,
    warns: true,
  },
  { graph: 'a plain decoder', couplesRows: true, useCacheBranch: null, vnni: false, warns: false },
  {
    graph: 'float weights',
    couplesRows: false,
    useCacheBranch: 'use_cache_branch',
    vnni: false,
    warns: false,
  },
  {
    graph: 'a merged decoder',
    couplesRows: true,
    useCacheBranch: 'use_cache_branch',
    vnni: true,
    warns: false,
  },
])('$graph, VNNI $vnni: warns of overflowing products $warns', ({ warns, vnni, ...decoder }) => {
  expect(overflowWarning(decoder, vnni) !== null).toBe(warns);
});

it('warns only about a model that this processor computes wrongly', async () => {
  for (const attention of ['merged', 'concatenated'] as const) {
    const directory = temporaryDirectory();
    writeSyntheticModel(directory, { attention, quantization: 'int8-dynamic' });
    const { runner, warning } = await openModel(modelOptions(directory));
    runner.dispose();
    expect(warning !== null).toBe(attention === 'merged' && !hasVnni());
  }
});
