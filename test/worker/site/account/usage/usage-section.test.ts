import { describe, expect, test } from 'vitest';
import { openAccount } from '../../../../../worker/site/account/account.ts';
import { niceMaximum } from '../../../../../worker/site/account/usage/usage-chart.tsx';
import {
  daysIn,
  lastDays,
  rangeFault,
  usageCsv,
} from '../../../../../worker/site/account/usage/usage-query.ts';
import { waitFor } from '../../../../support/wait-for.ts';
import { OWN, openView, SERVER_NOW, type SentRequest, serve } from '../fake-account.ts';

const SUMS = {
  requests: 3,
  failed: 1,
  prompt_tokens: 1_000,
  cached_tokens: 10,
  completion_tokens: 500,
  cost_micros: 2_500_000,
};

const usage = (data: readonly object[], more = false) => ({ data, total: SUMS, has_more: more });

const ROWS: Readonly<Record<string, readonly object[]>> = {
  day: [
    { ...SUMS, day: '2026-11-28', mean_first_token_ms: 40.4 },
    { ...SUMS, day: '2026-11-29', requests: 1, prompt_tokens: 7, mean_first_token_ms: null },
  ],
  key: [{ ...SUMS, key: 'own-id', mean_first_token_ms: 40 }],
  user: [],
};

const queryOf = ({ path }: SentRequest) => Object.fromEntries(new URL(path, 'http://host').searchParams);
const answer = (request: SentRequest) =>
  request.path.startsWith('/v1/usage') ? usage(ROWS[queryOf(request).group_by!]!) : undefined;

const shown = async () => {
  const view = openView('#/account/usage', OWN, answer);
  await waitFor(() => expect(view.page.text()).toContain('Sum'));
  return view;
};

describe('the usage of an account', () => {
  test('is that of the last 30 days of the server, whatever the clock of the device says', async () => {
    const { sent } = await shown();
    const [asked] = sent.filter(({ path }) => path.startsWith('/v1/usage')).map(queryOf);
    expect(asked).toMatchObject({ from: '2026-10-31', to: '2026-11-29', group_by: 'day' });
  });

  test('is a chart whose day the arrows choose, and a table that says the same', async () => {
    const { page } = await shown();
    const chart = () => page.all('div').find(({ attributes }) => attributes.get('role') === 'slider')!;
    expect(chart().attributes.get('aria-valuetext')).toBe('29 Nov 2026: 507 tokens');
    chart().dispatch('keydown', { key: 'ArrowLeft' });
    await waitFor(() => expect(page.text()).toContain('28 Nov 2026: 1,500 tokens'));
    const cells = page.all('tr', '28 Nov 2026')[0]!.childNodes.map(({ textContent }) => textContent);
    expect(cells).toEqual(['28 Nov 2026', '3', '1', '1,000', '10', '500', '2.50', '40 ms']);
  });

  test('is sorted by any column, in both directions', async () => {
    const { page } = await shown();
    const first = () => page.all('tr')[1]!.textContent;
    expect(first()).toContain('29 Nov 2026');
    page.press('Requests');
    await waitFor(() => expect(first()).toContain('28 Nov 2026'));
    page.press('Requests');
    await waitFor(() => expect(first()).toContain('29 Nov 2026'));
    expect(page.all('th', 'Requests')[0]!.attributes.get('aria-sort')).toBe('ascending');
  });

  test('is asked for by key, and a key leads to its days', async () => {
    const { page, sent } = await shown();
    page.all('label', 'Key')[0]!.childNodes[0]!.dispatch('change');
    await waitFor(() => expect(page.text()).toContain('This key own-id'));
    page.press('This key own-id');
    await waitFor(() =>
      expect(
        sent
          .map(queryOf)
          .filter(({ key }) => key === 'own-id')
          .map(({ group_by }) => group_by),
      ).toEqual(['day', 'key']),
    );
    expect(page.all('button', 'Key own-id')).toHaveLength(1);
  });

  test('without end users says so', async () => {
    const { page } = await shown();
    page.all('label', 'End user').at(-1)!.childNodes[0]!.dispatch('change');
    await waitFor(() => expect(page.text()).toContain('No request of these days names an end user'));
  });
});

test('the CSV has the rows of all pages and one line of names', async () => {
  const sent = serve(({ path }) => {
    const isFirst = !path.includes('after=');
    const headers = isFirst ? { link: '</v1/usage?after=x&format=csv>; rel="next"' } : undefined;
    return new Response(`day,requests\r\n${isFirst ? 'a,1' : 'b,2'}\r\n`, headers && { headers });
  });
  const account = openAccount('sk-test', Date.now);
  const range = { from: '2026-11-01', to: '2026-11-02' };
  const csv = await usageCsv(account, { range, filter: { model: 'm' }, group: 'key' });
  expect(await csv.text()).toBe('day,requests\r\na,1\r\nb,2\r\n');
  expect(queryOf(sent[0]!)).toEqual({ ...range, model: 'm', group_by: 'day,key', format: 'csv' });
});

test('a range has both of its days, and is refused if it is empty or too long', () => {
  expect(daysIn(lastDays(3, SERVER_NOW))).toEqual(['2026-11-27', '2026-11-28', '2026-11-29']);
  expect(rangeFault(lastDays(400, SERVER_NOW))).toBeNull();
  expect(rangeFault(lastDays(401, SERVER_NOW))).toContain('400 days');
  expect(rangeFault({ from: '2026-11-30', to: '2026-11-29' })).toContain('first day');
  expect(rangeFault({ from: '', to: '2026-11-29' })).toContain('first day');
});

test('the scale of the chart ends at a round number that no column exceeds', () => {
  expect([0, 1, 7, 11, 200, 4_999].map(niceMaximum)).toEqual([1, 1, 10, 20, 200, 5_000]);
});
