import { expect, test } from 'vitest';
import { waitFor } from '../../../../support/wait-for.ts';
import { OWN, openView, refusal, SERVER_NOW } from '../fake-account.ts';

const RECORD = {
  id: 'req/1',
  created_at: SERVER_NOW / 1000,
  key: 'own-id',
  user: null,
  model: 'default',
  status: 'failed',
  error_code: 'model_loading',
  finish_reasons: [],
  prompt_tokens: 1_200,
  cached_tokens: 8,
  completion_tokens: 0,
  cost_micros: 30,
  price_version: null,
  latency_ms: 420.4,
  first_token_ms: null,
};

test('a request is found by its id and shows its status, times, tokens and cost', async () => {
  const { page, sent } = openView('#/account/requests', OWN, ({ path }) => {
    if (path === '/v1/requests/req%2F1') return RECORD;
    return path.startsWith('/v1/requests') ? refusal(404, 'not_found') : undefined;
  });
  await waitFor(() => expect(page.field('Request id')).toBeDefined());
  page.write('Request id', ' req/1 ');
  page.submit('Show');
  await waitFor(() => expect(page.text()).toContain('Statusfailed: model_loading'));
  for (const fact of ['Duration420 ms', 'First token after–', '1,200, 8 of them cached', 'Cost0.00003'])
    expect(page.text()).toContain(fact);
  page.write('Request id', 'other');
  await waitFor(() => page.submit('Show'));
  await waitFor(() => expect(page.text()).toContain('The reason: not_found.'));
  expect(page.text()).not.toContain('model_loading');
  expect(sent.map(({ path }) => path)).toContain('/v1/requests/other');
});

test('the newest requests are a table in pages, and each opens its record', async () => {
  const ofPage = (first: number) =>
    Array.from({ length: 50 }, (_, at) => ({ ...RECORD, id: `req-${first + at}` }));
  const pages: Readonly<Record<string, object>> = {
    '/v1/requests?limit=50': { data: ofPage(0), next: '9' },
    '/v1/requests?limit=50&after=9': {
      data: [{ ...RECORD, id: 'last', status: 'completed', error_code: null }],
      next: null,
    },
  };
  const { page } = openView('#/account/requests', OWN, ({ path }) => pages[path]);
  await waitFor(() => expect(page.all('tr')).toHaveLength(51));
  expect(page.text()).toContain('failed: model_loading');
  expect(() => page.press('Newer')).toThrow();
  page.press('Older');
  await waitFor(() => expect(page.all('tr')).toHaveLength(2));
  expect(() => page.press('Older')).toThrow();
  page.press('29 Nov 2026, 11:59:30 UTC');
  await waitFor(() => expect(page.all('h3', 'last')).toHaveLength(1));
  page.press('Newer');
  await waitFor(() => expect(page.all('tr')).toHaveLength(51));
});

test('an account without requests, and a list that fails, are said in words', async () => {
  let fails = false;
  const reply = ({ path }: { readonly path: string }) =>
    path.startsWith('/v1/requests')
      ? fails
        ? refusal(503, 'limiter_unavailable')
        : { data: [], next: null }
      : undefined;
  const { page } = openView('#/account/requests', OWN, reply);
  await waitFor(() => expect(page.text()).toContain('No requests'));
  fails = true;
  const { page: failed } = openView('#/account/requests', OWN, reply);
  await waitFor(() => expect(failed.text()).toContain('limiter_unavailable'));
});
