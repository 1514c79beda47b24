import { expect, onTestFinished, test, vi } from 'vitest';
import { newCheckedId } from '../../../shared/api-key.ts';
import { importSigningKey } from '../../../shared/signing.ts';
import { KeyDirectory } from '../../../worker/tenants/key-directory.ts';
import type { KeyReading, StoredKey } from '../../../worker/tenants/stored-key.ts';

const MINUTE_MS = 60_000;

const stored = (hash: string, fromCopy = false): KeyReading => ({
  key: { hash, principal: { tenant: { id: 'acme' }, key: { id: 'k' } } as StoredKey['principal'] },
  fromCopy,
});
const NONE: KeyReading = { key: null, fromCopy: false };

/** Starts a look-up of `k` that the test answers later. */
function lookUp(directory: KeyDirectory) {
  const { promise, resolve, reject } = Promise.withResolvers<KeyReading>();
  const found = directory.find('k', () => promise);
  return { answer: resolve, fail: () => reject(new Error('unreachable')), found };
}

const hashIn = async (directory: KeyDirectory) =>
  (await directory.find('k', async () => stored('read anew'))).key?.hash;

test.each([
  ['the key', (directory: KeyDirectory) => directory.forget('k')],
  ['its tenant', (directory: KeyDirectory) => directory.forgetTenant('acme')],
  ['everything', (directory: KeyDirectory) => directory.forgetAll()],
])('does not cache a look-up during which %s was invalidated', async (_, forget) => {
  const directory = new KeyDirectory(() => 0);
  const { answer, found } = lookUp(directory);
  forget(directory);
  answer(stored('old'));
  expect((await found).key?.hash).toBe('old');
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

test('uses a key for 30 minutes after its last look-up while the store fails, marked as stale', async () => {
  let now = 0;
  let reads = 0;
  const directory = new KeyDirectory(() => now);
  const fail = async (): Promise<never> => {
    reads += 1;
    throw new Error('unreachable');
  };
  await directory.find('k', async () => stored('old'));
  expect(await directory.find('k', fail)).toMatchObject({ key: { hash: 'old' }, stale: false });
  now = MINUTE_MS;
  expect(await directory.find('k', fail)).toMatchObject({ key: { hash: 'old' }, stale: true });
  expect(await directory.find('k', fail)).toMatchObject({ key: { hash: 'old' }, stale: true });
  expect(reads).toBe(1);
  now = 30 * MINUTE_MS - 1;
  expect(await directory.find('k', fail)).toMatchObject({ key: { hash: 'old' }, stale: true });
  expect(reads).toBe(2);
  now = 30 * MINUTE_MS + 5_000;
  await expect(directory.find('k', fail)).rejects.toThrow('unreachable');
  expect(await hashIn(directory)).toBe('read anew');
});

test('does not use an outdated key that was invalidated during the failing look-up', async () => {
  let now = 0;
  const directory = new KeyDirectory(() => now);
  await directory.find('k', async () => stored('old'));
  now = MINUTE_MS;
  const { fail, found } = lookUp(directory);
  await expect.poll(() => directory.find('k', () => new Promise(() => {}))).toMatchObject({ stale: true });
  directory.forget('k');
  fail();
  await expect(found).rejects.toThrow('unreachable');
});

test('keeps known keys when 10,000 unknown ids are looked up', async () => {
  const directory = new KeyDirectory(() => 0);
  await directory.find('k', async () => stored('old'));
  for (let id = 0; id < 10_000; id += 1) await directory.find(`forged${id}`, async () => NONE);
  expect(await hashIn(directory)).toBe('old');
});

test('computes the keyed check of an id only before a look-up', async () => {
  const secret = 'the secret of ids, 32 bytes or so';
  const random = (bytes: number) => new Uint8Array(bytes).fill(7);
  const id = await newCheckedId(random, await importSigningKey(secret));
  const directory = new KeyDirectory(() => 0, { secret, acceptUnchecked: false });
  expect((await directory.find(id, async () => stored('old'))).key?.hash).toBe('old');
  const sign = vi.spyOn(crypto.subtle, 'sign');
  onTestFinished(() => sign.mockRestore());
  expect((await directory.find(id, async () => NONE)).key?.hash).toBe('old');
  expect(sign).not.toHaveBeenCalled();
  expect((await directory.find(`${id.slice(0, 12)}0000`, async () => stored('forged'))).key).toBeNull();
  expect(sign).toHaveBeenCalledOnce();
});

/** A store whose copy lags: it has only some of the keys of the primary. Records what was read. */
function laggingStore(copied: readonly string[], all: readonly string[]) {
  const reads: string[] = [];
  const read = async (id: string, session: string): Promise<KeyReading> => {
    const fromCopy = session === 'first-unconstrained';
    reads.push(fromCopy ? 'copy' : 'primary');
    return (fromCopy ? copied : all).includes(id) ? stored(id, fromCopy) : { key: null, fromCopy };
  };
  return { read, reads };
}

test('asks the primary only for ids that no copy knows', async () => {
  const { read, reads } = laggingStore(['old'], ['old', 'new']);
  const directory = new KeyDirectory(() => 0);
  expect(await directory.find('old', read)).toMatchObject({ key: { hash: 'old' }, fromCopy: true });
  expect(reads.splice(0)).toEqual(['copy']);
  expect(await directory.find('new', read)).toMatchObject({ key: { hash: 'new' }, fromCopy: false });
  expect((await directory.find('none', read)).key).toBeNull();
  expect(reads.splice(0)).toEqual(['copy', 'primary', 'copy', 'primary']);
  expect(await directory.find('old', read)).toMatchObject({ key: { hash: 'old' }, fromCopy: false });
  expect(reads).toEqual([]);
});

test('asks the primary about ten made-up ids in ten seconds, and always about ids that were made here', async () => {
  const secret = 'the secret of ids, 32 bytes or so';
  const random = (bytes: number) => new Uint8Array(bytes).fill(7);
  const id = await newCheckedId(random, await importSigningKey(secret));
  const { read, reads } = laggingStore([], [id]);
  let now = 0;
  const directory = new KeyDirectory(() => now, { secret, acceptUnchecked: true });
  const flood = (from: number) =>
    Promise.allSettled(
      Array.from({ length: 500 }, (_, index) =>
        directory.find(`forged${String(from + index).padStart(6, '0')}`, read),
      ),
    );
  const failed = (results: readonly PromiseSettledResult<unknown>[]) =>
    results.filter(({ status }) => status === 'rejected').length;
  expect(failed(await flood(0))).toBe(490);
  expect(reads.filter((from) => from === 'primary')).toHaveLength(10);
  expect((await directory.find(id, read)).key?.hash).toBe(id);
  now = 10_000;
  expect(failed(await flood(500))).toBe(490);
});

test('reads the primary for a minute after a change of its own', async () => {
  const { read, reads } = laggingStore(['k'], ['k']);
  let now = 0;
  const directory = new KeyDirectory(() => now);
  await directory.find('k', read);
  directory.forget('k');
  await directory.find('k', read);
  now = MINUTE_MS;
  await directory.find('k', read);
  expect(reads).toEqual(['copy', 'primary', 'copy']);
});
