import { expect, test } from 'vitest';
import { UsageAccounts } from '../../../origin/request/usage-accounts.ts';
import { usageAccount } from '../../../shared/usage.ts';

const MINUTE = 60_000;

test('an account has usage, finish reasons and end, and is kept for ten minutes', () => {
  let now = 0;
  const recent = new UsageAccounts(() => now);
  const first = recent.open('first', 'tiny', -30);
  first.observe([
    { type: 'accepted', model: 'm', promptTokens: [3, 4] },
    { type: 'started', prompt: 0, cachedTokens: 2, queueMs: 5 },
    { type: 'token', choice: 0, text: 'a', completionTokens: 1 },
    { type: 'token', choice: 1, text: 'b', completionTokens: 2 },
    { type: 'finish', choice: 1, reason: 'stop', stopReason: null, completionTokens: 2 },
  ]);
  const used = {
    usage: { promptTokens: 3, cachedTokens: 2, completionTokens: 3 },
    finishReasons: ['stop'],
    firstTokenMs: 30,
  };
  expect(recent.find('first')).toEqual({ ...used, ended: false });
  first.end();
  expect(recent.find('first')).toEqual({ ...used, ended: true });
  now = 10 * MINUTE;
  recent.open('second', 'tiny', now);
  expect(recent.find('first')).toEqual({ ...used, ended: true });
  now += 1;
  recent.open('third', 'tiny', now);
  expect(recent.find('first')).toBeNull();
  expect(recent.find('second')?.ended).toBe(false);
});

test('the engine’s final usage replaces the count', () => {
  const recent = new UsageAccounts(() => 0);
  const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 9 };
  recent.open('x', 'tiny', 0).observe([
    { type: 'token', choice: 0, text: 'a', completionTokens: 1 },
    { type: 'done', usage, timings: { queueMs: 0, promptMs: 0, generationMs: 0 } },
  ]);
  expect(recent.find('x')?.usage).toEqual(usage);
});

test('evicts the oldest accounts beyond the limit', () => {
  const recent = new UsageAccounts(() => 0);
  for (let index = 0; index <= 100_000; index += 1) recent.open(`r${index}`, 'tiny', 0);
  expect(recent.find('r0')).toBeNull();
  expect(recent.find('r1')).not.toBeNull();
});

test('an account holds the time to the first token', () => {
  let now = 100;
  const recent = new UsageAccounts(() => now);
  const account = recent.open('x', 'tiny', 40);
  for (const completionTokens of [1, 2]) {
    account.observe([{ type: 'token', choice: 0, text: 'a', completionTokens }]);
    now += 1000;
  }
  expect(recent.find('x')).toMatchObject({ firstTokenMs: 60 });
});

test('an account stays valid when the clock is set back', () => {
  let now = 5000;
  const recent = new UsageAccounts(() => now);
  const account = recent.open('x', 'tiny', now);
  now = 0;
  account.observe([{ type: 'token', choice: 0, text: 'a', completionTokens: 1 }]);
  expect(usageAccount.parse(recent.find('x'))).toMatchObject({
    firstTokenMs: 0,
    usage: { completionTokens: 1 },
  });
});

test('withdraws only its own account, not a newer one with the same name', () => {
  const recent = new UsageAccounts(() => 0);
  const first = recent.open('x', 'tiny', 0);
  recent.open('x', 'tiny', 0);
  first.withdraw();
  expect(recent.find('x')).not.toBeNull();
});
