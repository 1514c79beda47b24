import { expect, test } from 'vitest';
import type { Env } from '../../../worker/env/env.ts';
import { parseSettings } from '../../../worker/env/settings.ts';
import { accountOf } from '../../../worker/upstreams/pool.ts';
import { UpstreamDirectory } from '../../../worker/upstreams/upstream-directory.ts';
import { account, databaseOf } from './listed-upstreams.ts';

test('if two upstreams have an account of a request, the running one counts, else the one with the higher usage', () => {
  const failed = account(0, true);
  expect(accountOf([failed, account(0, false)])).toEqual(account(0, false));
  expect(accountOf([failed, null, account(7, true)])).toEqual(account(7, true));
  expect(accountOf([account(7, true), failed])).toEqual(account(7, true));
  expect(accountOf([null, failed])).toEqual(failed);
  expect(accountOf([null])).toBeNull();
});

test('asks only the upstream that served the request, because the others may be unreachable', async () => {
  const upstreams = ['near', 'far'].map((name) => ({
    kind: 'origin',
    name,
    url: `http://${name}.example`,
    binding: name,
  }));
  const headers = { 'content-length': '1' }; // Node cannot read the platform's way without one.
  const near = { fetch: async () => Response.json(account(7, true), { headers }) };
  const far = { fetch: () => Promise.reject(new Error('away')) };
  const env = {
    UPSTREAMS: JSON.stringify(upstreams),
    ORIGIN_SECRET: 'a secret of at least 32 characters',
    near,
    far,
  } as unknown as Env;
  const settings = parseSettings({ UPSTREAMS: env.UPSTREAMS } as Env);
  const catalogue = await new UpstreamDirectory(env, settings, Date.now).catalogue(
    databaseOf(async () => []),
  );
  const { signal } = new AbortController();
  expect(await catalogue.usageOf('a', 'near', signal)).toEqual({ account: account(7, true), complete: true });
  expect(await catalogue.usageOf('a', 'far', signal)).toEqual({ account: null, complete: false });
  expect(await catalogue.usageOf('a', null, signal)).toEqual({ account: account(7, true), complete: false });
});
