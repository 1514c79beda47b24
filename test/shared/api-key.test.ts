import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { apiKeyId, hasRightCheck, newApiKey, newCheckedId } from '../../shared/api-key.ts';
import { importSigningKey } from '../../shared/signing.ts';

const SECRET = await importSigningKey('a secret of the tests, 32 bytes at least');
const OTHER = await importSigningKey('another secret of the tests, as long');

test('reads the id of a key with and without a keyed check', async () => {
  const checked = await newCheckedId(randomBytes, SECRET);
  expect(checked).toMatch(/^[0-9A-Za-z]{16}$/);
  for (const { id, secret } of [newApiKey(randomBytes), newApiKey(randomBytes, checked)]) {
    expect(apiKeyId(secret)).toBe(id);
  }
});

test('accepts the check of an id only with the secret that made it, and only for this id', async () => {
  const id = await newCheckedId(randomBytes, SECRET);
  expect(await hasRightCheck(id, SECRET)).toBe(true);
  expect(await hasRightCheck(id, OTHER)).toBe(false);
  expect(
    await hasRightCheck((await newCheckedId(randomBytes, SECRET)).slice(0, 12) + id.slice(12), SECRET),
  ).toBe(false);
  expect(await hasRightCheck(id.slice(0, 12), SECRET)).toBeNull();
});
