import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { developmentState } from '../../../origin/start/development-state.ts';

function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'continuo-state-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('the key outlives a start, readable by its owner alone; half a file makes a new one', () => {
  const directory = path.join(temporaryDirectory(), 'made', 'here');
  const state = developmentState(directory);
  const file = path.join(directory, 'development.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(developmentState(directory)).toEqual(state);
  writeFileSync(file, '{"apiKey":');
  expect(developmentState(directory).apiKey).not.toBe(state.apiKey);
});

test('a directory that cannot be made is refused by the name of its variable', () => {
  const file = path.join(temporaryDirectory(), 'file');
  writeFileSync(file, '');
  for (const directory of [file, path.join(file, 'below')]) {
    expect(() => developmentState(directory)).toThrow(/^CONTINUO_STATE_DIR: .*\/file/);
  }
});
