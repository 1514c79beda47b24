import { expect, test } from 'vitest';
import { KeyDirectory } from '../../../worker/tenants/key-directory.ts';
import type { StoredKey } from '../../../worker/tenants/stored-key.ts';

const MINUTE_MS = 60_000;

const stored = (hash: string): StoredKey => ({
  hash,
  principal: { tenant: { id: 'acme' }, key: { id: 'k' } } as StoredKey['principal'],
});

/** Starts a look-up of `k` that the test answers later. */
function lookUp(directory: KeyDirectory) {
  const { promise, resolve } = Promise.withResolvers<StoredKey | null>();
  const found = directory.find('k', () => promise);
  return { answer: resolve, found };
}

const hashIn = async (directory: KeyDirectory) =>
  (await directory.find('k', async () => stored('read anew')))?.hash;

test.each([
  ['the key', (directory: KeyDirectory) => directory.forget('k')],
  ['its tenant', (directory: KeyDirectory) => directory.forgetTenant('acme')],
  ['everything', (directory: KeyDirectory) => directory.forgetAll()],
])('does not cache a look-up during which %s was invalidated', async (_, forget) => {
  const directory = new KeyDirectory(() => 0);
  const { answer, found } = lookUp(directory);
  forget(directory);
  answer(stored('old'));
  expect((await found)?.hash).toBe('old');
  expect(await hashIn(directory)).toBe('read anew');
});

test('caches a key for one minute from the start of the look-up', async () => {
  let now = 0;
  const directory = new KeyDirectory(() => now);
  const { answer, found } = lookUp(directory);
  now = 5_000;
  answer(stored('old'));
  await found;
  now = MINUTE_MS - 1;
  expect(await hashIn(directory)).toBe('old');
  now = MINUTE_MS;
  expect(await hashIn(directory)).toBe('read anew');
});
