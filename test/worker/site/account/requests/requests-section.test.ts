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
