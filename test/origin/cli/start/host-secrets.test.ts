import { readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { hostSecret, hostSecrets } from '../../../../origin/cli/start/host-secrets.ts';
import { newDirectory } from '../../../support/new-directory.ts';

test('secrets stay as they are, in files that only their owner reads', () => {
  const directory = newDirectory();
  const secrets = hostSecrets(directory);
  expect(hostSecrets(directory)).toEqual(secrets);
  expect(new Set(Object.values(secrets)).size).toBe(4);
  const files = readdirSync(directory);
  expect(files.toSorted()).toEqual(['admin-key', 'key-id-secret', 'origin-secret', 'webhook-secret']);
  for (const file of files) expect(statSync(path.join(directory, file)).mode & 0o777).toBe(0o600);
});

test('an empty file is no secret', () => {
  const directory = newDirectory();
  writeFileSync(path.join(directory, 'origin-secret'), '\n');
  expect(() => hostSecret(directory, 'ORIGIN_SECRET')).toThrow(/origin-secret is empty/);
});
