import { expect, test, vi } from 'vitest';
import { waitFor } from '../../../../support/wait-for.ts';
import { OWN, openView, SERVER_NOW } from '../fake-account.ts';

const BATCH = {
  id: 'batch-1',
  endpoint: '/v1/completions',
  errors: null,
  status: 'in_progress',
  output_file_id: null as string | null,
  error_file_id: null as string | null,
  created_at: SERVER_NOW / 1000 - 100,
  expires_at: SERVER_NOW / 1000 + 9_000,
  request_counts: { total: 1_000, completed: 400, failed: 2 },
  metadata: { file: 'nightly.jsonl' },
};

test('a running batch shows its progress, is cancelled after a question, and ends with its files', async () => {
  vi.useFakeTimers();
  let batch = BATCH;
  const { page, sent } = openView('#/account/batches', OWN, ({ path, method }) => {
    if (method === 'POST') batch = { ...BATCH, status: 'cancelled', output_file_id: 'file-1' };
    return path.startsWith('/v1/batches?') ? { data: [batch], has_more: false } : undefined;
  });
  await vi.advanceTimersByTimeAsync(200);
  expect(page.text()).toContain('nightly.jsonlbatch-1');
  expect(page.text()).toContain('in progress 402 of 1,000 lines, 2 failed');
  const lists = () => sent.filter(({ path }) => path.startsWith('/v1/batches?')).length;
  expect(lists()).toBe(1);
  batch = { ...batch, request_counts: { ...batch.request_counts, completed: 500 } };
  await vi.advanceTimersByTimeAsync(3_500);
  expect(page.text()).toContain('502 of 1,000 lines');
  expect(lists()).toBe(2);
  page.press('Cancel…');
  await vi.advanceTimersByTimeAsync(100);
  page.submit('Cancel the batch');
  await vi.advanceTimersByTimeAsync(200);
  expect(sent.filter(({ method }) => method === 'POST').map(({ path }) => path)).toEqual([
    '/v1/batches/batch-1/cancel',
  ]);
  expect(page.text()).toContain('cancelled');
  expect(page.all('button', 'Results')).toHaveLength(1);
  expect(page.all('button', 'Cancel…')).toEqual([]);
});

test('a refused file shows its first fault with its line, and an account without batches says so', async () => {
  const errors = { data: [{ message: 'Repeated custom_id.', line: 7 }] };
  const failed = {
    ...BATCH,
    status: 'failed',
    errors,
    request_counts: { total: 0, completed: 0, failed: 0 },
  };
  let data: object[] = [failed];
  const { page } = openView('#/account/batches', OWN, ({ path }) =>
    path.startsWith('/v1/batches?') ? { data, has_more: false } : undefined,
  );
  await waitFor(() => expect(page.text()).toContain('Line 7: Repeated custom_id.'));
  data = [];
  const { page: empty } = openView('#/account/batches', OWN, ({ path }) =>
    path.startsWith('/v1/batches?') ? { data, has_more: false } : undefined,
  );
  await waitFor(() => expect(empty.text()).toContain('No batches'));
});
