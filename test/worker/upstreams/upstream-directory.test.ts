import { expect, onTestFinished, test, vi } from 'vitest';
import type { Env } from '../../../worker/env/env.ts';
import { parseSettings } from '../../../worker/env/settings.ts';
import { UpstreamDirectory } from '../../../worker/upstreams/upstream-directory.ts';
import type { StoredUpstream } from '../../../worker/upstreams/upstream-store.ts';
import { account, databaseOf, originRow } from './listed-upstreams.ts';

const { signal } = new AbortController();
const MINUTE_MS = 60_000;

/** What the origins behind the bindings of these names have counted; null = it does not answer. */
function envOf(accounts: Readonly<Record<string, ReturnType<typeof account> | null>>): Env {
  const headers = { 'content-length': '1' };
  const bindings = Object.entries(accounts).map(([name, known]) => {
    const fetch = async () =>
      known ? Response.json(known, { headers }) : Promise.reject(new Error('has ended'));
    return [name, { fetch }];
  });
  const secret = 'a secret of at least 32 characters';
  return { ORIGIN_SECRET: secret, ...Object.fromEntries(bindings) } as unknown as Env;
}

test('still asks a removed upstream what its requests have used, and does not need its answer', async () => {
  const env = envOf({ here: account(1, true), draining: account(9, true), gone: null });
  const directory = new UpstreamDirectory(env, parseSettings({}), () => 0);
  const rows = [originRow('here'), originRow('draining', 1), originRow('gone', 1)];
  const catalogue = await directory.catalogue(databaseOf(async () => rows));
  const usageOf = (upstream: string | null) => catalogue.usageOf('a', upstream, signal);
  expect(await usageOf('draining')).toEqual({ account: account(9, true), complete: true });
  expect(await usageOf(null)).toEqual({ account: account(9, true), complete: true });
  expect(await usageOf('gone')).toEqual({ account: null, complete: false });
});

/** A directory with a clock, whose reads the test answers. */
function world() {
  const clock = { now: 0 };
  const reads: { session: string; answer: (rows: readonly StoredUpstream[]) => void; fail: () => void }[] =
    [];
  const db = databaseOf((session) => {
    const { promise, resolve, reject } = Promise.withResolvers<readonly StoredUpstream[]>();
    reads.push({ session, answer: resolve, fail: () => reject(new Error('away')) });
    return promise;
  });
  const env = envOf({ a: account(1, true), b: account(2, true) });
  const directory = new UpstreamDirectory(env, parseSettings({}), () => clock.now);
  const background: Promise<unknown>[] = [];
  const ask = () => directory.catalogue(db, (work) => background.push(work));
  /** Which upstream a list has. */
  const shown = async (catalogue: ReturnType<typeof ask>) =>
    (await (await catalogue).usageOf('x', null, signal)).account?.usage.completionTokens;
  return { clock, reads, directory, ask, shown, ended: () => Promise.all(background) };
}

test('reads the list again after half a minute in the background, and after a minute first', async () => {
  const { clock, reads, ask, shown, ended } = world();
  const first = shown(ask());
  reads[0]!.answer([originRow('a')]);
  expect(await first).toBe(1);
  clock.now = 29_999;
  await ask();
  expect(reads).toHaveLength(1);
  clock.now = 30_000;
  expect(await shown(ask())).toBe(1);
  expect(await shown(ask())).toBe(1);
  expect(reads).toHaveLength(2);
  reads[1]!.answer([originRow('b')]);
  await ended();
  expect(await shown(ask())).toBe(2);
  clock.now += MINUTE_MS;
  const waiting = shown(ask());
  // Meanwhile, the others use the known list.
  expect(await shown(ask())).toBe(2);
  reads[2]!.answer([originRow('a')]);
  expect(await waiting).toBe(1);
});

test('a read that a change of this isolate or a later read has overtaken does not count', async () => {
  const { clock, reads, directory, ask, shown, ended } = world();
  const first = ask();
  reads[0]!.answer([originRow('a')]);
  await first;
  clock.now = 30_000;
  await ask();
  directory.forget();
  const changed = shown(ask());
  expect(reads.map(({ session }) => session)).toEqual([
    'first-unconstrained',
    'first-unconstrained',
    'first-primary',
  ]);
  reads[2]!.answer([originRow('b')]);
  expect(await changed).toBe(2);
  reads[1]!.answer([originRow('a')]);
  await ended();
  expect(await shown(ask())).toBe(2);
});

test('reads again five seconds after a failure, and after the clock has stepped back', async () => {
  const { clock, reads, ask, shown } = world();
  const logged = vi.spyOn(console, 'error').mockReturnValue();
  onTestFinished(() => logged.mockRestore());
  const first = ask();
  reads[0]!.fail();
  await first;
  expect(logged.mock.calls).toEqual([['{"event":"upstreams_unknown","message":"away"}']]);
  clock.now = 4_999;
  await ask();
  expect(reads).toHaveLength(1);
  clock.now = 5_000;
  const second = shown(ask());
  reads[1]!.answer([originRow('b')]);
  expect(await second).toBe(2);
  clock.now = 1_000;
  await ask();
  expect(reads).toHaveLength(3);
});
