import { homedir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { stateDirectory } from '../../../../origin/cli/start/installation.ts';

const root = path.resolve('.');

test.each([
  ['a checkout', false, {}, path.join(root, '.continuo')],
  ['a checkout', false, { CONTINUO_STATE_DIR: 'state' }, path.join(root, 'state')],
  ['a package', true, { XDG_DATA_HOME: '/data' }, '/data/continuo'],
  ['a package', true, {}, path.join(homedir(), '.local/share/continuo')],
  ['a package', true, { CONTINUO_STATE_DIR: 'state' }, path.join(process.cwd(), 'state')],
  ['a package', true, { CONTINUO_STATE_DIR: '', XDG_DATA_HOME: '/data' }, '/data/continuo'],
])('%s keeps its state where the environment says (%#)', (_, isPackage, environment, directory) => {
  expect(stateDirectory(environment, isPackage)).toBe(directory);
});
