import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { developmentState } from '../../../../origin/cli/start/development-state.ts';
import { newDirectory } from '../../../support/new-directory.ts';

function temporaryDirectory(): string {
  const directory = newDirectory();
  return directory;
}

test('the key survives a restart in a file that only its owner can read; an incomplete file is replaced', () => {
  const directory = temporaryDirectory();
  const state = developmentState(directory);
  const file = path.join(directory, 'development.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(developmentState(directory)).toEqual(state);
  writeFileSync(file, '{"apiKey":');
  expect(developmentState(directory).apiKey).not.toBe(state.apiKey);
});
