import { expect, test } from 'vitest';
import { KeyDirectory } from '../../../worker/tenants/key-directory.ts';
import type { StoredKey } from '../../../worker/tenants/stored-key.ts';

const MINUTE_MS = 60_000;

const stored = (hash: string): StoredKey => ({
  hash,
  principal: { tenant: { id: 'acme' }, key: { id: 'k' } } as StoredKey['principal'],
});

/** A look-up of `k` that is answered when told to. */
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
])('a look-up under way while %s is forgotten is not kept', async (_, forget) => {
  const directory = new KeyDirectory(() => 0);
  const { answer, found } = lookUp(directory);
  forget(directory);
  answer(stored('old'));
  expect((await found)?.hash).toBe('old');
  expect(await hashIn(directory)).toBe('read anew');
});

test('a key is believed for a minute from the moment the store was asked', async () => {
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
