import { expect, test } from 'vitest';
import { accountOf } from '../../../worker/upstreams/pool.ts';

const account = (completionTokens: number, ended: boolean) => ({
  usage: { promptTokens: 3, cachedTokens: 0, completionTokens },
  finishReasons: [],
  ended,
});

test('of a request that two upstreams remember, the one that runs counts, else the one that did the work', () => {
  const failed = account(0, true);
  expect(accountOf([failed, account(0, false)])).toEqual(account(0, false));
  expect(accountOf([failed, null, account(7, true)])).toEqual(account(7, true));
  expect(accountOf([account(7, true), failed])).toEqual(account(7, true));
  expect(accountOf([null, failed])).toEqual(failed);
  expect(accountOf([null])).toBeNull();
});
