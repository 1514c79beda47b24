import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { h } from 'preact';
import { afterEach, expect, test, vi } from 'vitest';
import { KeyFacts } from '../../../../worker/site/shell/key-facts.tsx';
import type { Key } from '../../../../worker/site/store/key-record.ts';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { CONNECTION } from '../support/fake-completions.ts';
import { rendered } from '../support/rendered.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

const KEY: Key = {
  name: 'Writer',
  scopes: ['completions', 'models'],
  models: null,
  expires_at: Date.UTC(2100, 0, 2, 12) / 1_000,
  limits: {
    requests_per_minute: 60,
    tokens_per_day: 10_000,
    micros_per_month: 1_000_000,
    tokens_per_month: null,
  },
  used: { tokens_per_day: 7, micros_per_month: 0 },
  tenant: {
    name: 'Ink and Paper',
    limits: { tokens_per_day: 50_000 },
    used: { tokens_per_day: 1_500, micros_per_month: 250_000 },
    balance_micros: 2_500_000,
  },
};

function opened(answer: () => Response) {
  vi.stubGlobal('navigator', { onLine: true });
  const requested = vi.fn(async (_path: string, _request: RequestInit) => answer());
  vi.stubGlobal('fetch', requested);
  const session = { connection: signal(CONNECTION) } as unknown as Session;
  const page = rendered(h(SessionContext.Provider, { value: session }, h(KeyFacts, {})));
  return { page, requested };
}

test('the facts of a key are its names, expiry, balance, and the limits that it or its account has', async () => {
  const { page, requested } = opened(() => Response.json(KEY));
  await vi.waitFor(() => expect(page.text()).toContain('Writer of Ink and Paper, for completions, models'));
  expect(requested.mock.calls.map(([path]) => path)).toEqual(['/v1/key']);
  expect(page.text()).toMatch(/Expires on 2 January 2100/);
  expect(page.text()).toContain('Balance of the account: 2.50');
  const row = (name: string) => page.all('tr', name)[0]?.childNodes.map(({ textContent }) => textContent);
  expect(row('tokens per day')).toEqual(['tokens per day', '7 of 10,000 used', '1,500 of 50,000 used']);
  expect(row('money per month')).toEqual(['money per month', '0.00 of 1.00 used', '0.25 used']);
  expect(row('requests per minute')).toEqual(['requests per minute', '60', 'no limit']);
  expect(row('tokens per month')).toBeUndefined();
});

test('a key without expiry, balance and limits says so', async () => {
  const tenant = { ...KEY.tenant, balance_micros: null };
  const { page } = opened(() => Response.json({ ...KEY, models: ['a', 'b'], expires_at: null, tenant }));
  await vi.waitFor(() => expect(page.text()).toContain('with a, bDoes not expire'));
  expect(page.text()).not.toContain('Balance');
});

test('without an answer of the server, the dialog shows no facts', async () => {
  const { page, requested } = opened(() => Response.json({}, { status: 500 }));
  await vi.waitFor(() => expect(requested).toHaveBeenCalled());
  expect(page.text()).toBe('');
});
