import { expect, test } from 'vitest';
import type { OwnKey } from '../../../../../worker/site/account/api-objects.ts';
import { waitFor } from '../../../../support/wait-for.ts';
import { OWN, openView, SERVER_NOW } from '../fake-account.ts';

const LIMITED: OwnKey = {
  ...OWN,
  expires_at: SERVER_NOW / 1000 + 90_030,
  models: ['small', 'large'],
  limits: { ...OWN.limits, tokens_per_day: 1_000 },
  used: { ...OWN.used, tokens_per_day: 1_000 },
  left: { ...OWN.left, tokens_per_day: 0 },
  alerts: [
    {
      key: null,
      limit: 'micros_per_month',
      period: '2026-11',
      share_percent: 80,
      limit_micros: 5_000_000,
      spent_micros: 4_000_000,
      reached_at: SERVER_NOW / 1000 - 7_210,
    },
  ],
  tenant: {
    ...OWN.tenant,
    limits: {
      ...OWN.limits,
      tokens_per_day: 50_000,
      soft_micros_per_day: 2_000_000,
      requests_per_minute: 60,
    },
    used: { ...OWN.used, tokens_per_day: 1_500, micros_per_day: 500_000 },
    left: { ...OWN.left, tokens_per_day: 48_500 },
    balance_micros: 2_500_000,
  },
};

const shown = async (own: OwnKey) => {
  const { page } = openView('#/account', own);
  await waitFor(() => expect(page.text()).toContain('Limits and balance'));
  return page;
};

test('limits are bars of what the server says is used and left, with the time until they begin again', async () => {
  const page = await shown(LIMITED);
  const tokens = page.all('section', 'Tokens per day')[0]!.textContent;
  expect(tokens).toBe(
    'Tokens per day begins again in 12 h 0 minAccount48,500 left 1,500 of 50,000 usedThis key0 left 1,000 of 1,000 used',
  );
  const [account, key] = page
    .all('span')
    .map(({ attributes }) => Object.fromEntries(attributes))
    .filter(({ role }) => role === 'meter');
  expect(account).toMatchObject({ 'aria-label': 'Tokens per day of the account' });
  expect(key).toMatchObject({ 'aria-valuetext': '1,000 of 1,000 used' });
  expect(page.text()).toContain('As of 11:59:3');
});

test('a soft limit counts the same cost, and is shown only if there is one', async () => {
  const page = await shown(LIMITED);
  const soft = page.all('section', 'Money per day, alerts only')[0]!.textContent;
  expect(soft).toContain('1.50 left 0.50 of 2.00 used');
  expect((await shown(OWN)).text()).not.toContain('alerts only');
});

test('expiry, balance, rates and alerts use the time of the server, also if the device is a day behind', async () => {
  const page = await shown(LIMITED);
  expect(page.text()).toContain('Balance2.50');
  expect(page.text()).toContain('in 1 d 1 h 30 Nov 2026, 13:00 UTC');
  expect(page.text()).toContain('small, large');
  expect(page.all('tr', 'Requests per minute')[0]!.textContent).toBe('Requests per minute60–');
  expect(page.text()).toContain('80 % of Money per month (5.00) of the account 2026-11, reached 2 h ago');
});

test('an account without limits, balance, expiry and alerts says so', async () => {
  const page = await shown(OWN);
  expect(page.text()).toContain('0 used, no limit');
  expect(page.text()).toContain('This key endsNever');
  expect(page.text()).not.toContain('Balance2');
  expect(page.text()).toContain('Neither the key nor the account has such limits.');
  expect(page.text()).toContain('No alerts');
});
