import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { PreparedWorker } from '../../../../origin/cli/start/prepare-worker.ts';
import { keptFor } from '../../../../origin/cli/start/prepared-worker.ts';
import { sourcesHash } from '../../../../worker/site/build/sources-hash.ts';
import { newDirectory } from '../../../support/new-directory.ts';

test('a Worker is prepared again if a source has changed, or if what was kept is broken', async () => {
  const root = newDirectory();
  const [source, kept] = [path.join(root, 'index.ts'), path.join(root, 'dist/prepared.json')];
  let prepared = 0;
  const start = () =>
    keptFor(sourcesHash(root, ['**']), kept, async () => {
      prepared++;
      return { script: `run ${prepared}` } as PreparedWorker;
    });
  writeFileSync(source, 'one');
  expect([await start(), await start()]).toEqual([{ script: 'run 1' }, { script: 'run 1' }]);
  writeFileSync(source, 'two');
  expect([await start(), await start()]).toEqual([{ script: 'run 2' }, { script: 'run 2' }]);
  writeFileSync(kept, '{"hash": "');
  expect(await start()).toEqual({ script: 'run 3' });
});
