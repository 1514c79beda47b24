import { expect, test } from 'vitest';
import { firstTokenMs, lastMinutes, rates } from '../../../../worker/site/operator/now/activity.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { refusal } from '../account/fake-account.ts';
import { changes, NOW, openOperator } from './fake-operator.ts';

const bounds = [0.1, 0.5];
const minute = (at: number, tokens: number, delays: readonly number[]) => ({ at, tokens, delays });
const model = (id: string, minutes: ReturnType<typeof minute>[]) => ({
  ...{ id, state: 'loaded', running: 3, waiting: 2, slots: 8 },
  minutes,
});

test('rates are those of the last 60 whole minutes, all models together', () => {
  const now = 1_800_000_030_000;
  const minutes = lastMinutes(now);
  expect([minutes.length, minutes[0], minutes.at(-1)]).toEqual([60, 1_799_996_400, 1_799_999_940]);
  const present = minute(1_800_000_000, 900, []);
  const models = [
    model('a', [minute(1_799_996_400, 60, []), present]),
    model('b', [minute(1_799_996_400, 120, []), minute(1_799_996_340, 7, [])]),
  ];
  const all = rates(models, minutes);
  expect([all[0], all.slice(1).some((rate) => rate > 0)]).toEqual([3, false]);
});

test('times to the first token are by a line through their bucket; the last bound stands for all above', () => {
  const of = (delays: readonly number[], share: number) =>
    firstTokenMs({ minutes: [minute(0, 0, delays), minute(60, 0, delays)] }, bounds, share);
  expect(of([1, 0, 0], 0.5)).toBe(50);
  expect(of([1, 1, 0], 0.75)).toBeCloseTo(300, 9);
  expect(of([0, 0, 1], 0.95)).toBe(500);
  expect(of([0, 0, 0], 0.5)).toBeNull();
});

test('Now shows slots, queue and figures of each model, and the upstreams that do not answer', async () => {
  const last = Math.floor(NOW / 60) * 60 - 60;
  const data = [
    { id: 'fra-1', fault: null, bounds, models: [model('mini', [minute(last, 120, [4, 0, 0])])] },
    { id: 'fra-2', fault: 'The upstream is unreachable.', bounds: [], models: [] },
  ];
  const { page } = await openOperator('', 'read-only', 'fra-1', ({ path }) =>
    path === '/admin/v1/activity' ? { data } : undefined,
  );
  expect(page.text()).toContain('fra-2 did not say what it does: The upstream is unreachable.');
  expect(page.all('tr', 'mini')[0]!.textContent).toBe('minifra-1loaded3 of 822 tokens/s50 ms95 ms');
  expect(page.all('figcaption')[0]!.textContent).toBe('11:58 UTC: 2 tokens/s');
});

const UPSTREAM = {
  ...{ id: 'fra-1', source: 'variable', fault: null, breaker: 'open', failures: 5, running: 2 },
  config: { kind: 'origin', url: 'https://fra-1.example.com' },
};

test('upstreams show their breakers, are replaced as JSON, and removed with their name typed', async () => {
  let isRefused = true;
  const { page, sent } = await openOperator('upstreams', 'owner', 'fra-1', ({ method, path }) => {
    if (method !== 'GET') return isRefused ? refusal(400, 'invalid_value') : {};
    return path.startsWith('/admin/v1/upstreams') ? { data: [UPSTREAM], has_more: false } : undefined;
  });
  expect(page.all('tr', 'fra-1')[0]!.textContent).toBe('fra-1open52originhttps://fra-1.example.comvariable');
  page.press('fra-1');
  const settings = 'Settings JSON, as in the variable UPSTREAMS';
  await waitFor(() => expect(page.field(settings).value).toContain('"kind": "origin"'));
  page.write(settings, '{');
  page.submit('Save');
  await waitFor(() => expect(page.text()).toContain('The settings are not JSON'));
  expect(changes(sent)).toEqual([]);
  page.write(settings, '{"kind": "origin", "url": "https://fra-2.example.com"}');
  page.submit('Save');
  await waitFor(() => expect(page.text()).toContain('The reason: invalid_value.'));
  isRefused = false;
  page.press('Remove…');
  await waitFor(() => expect(page.text()).toContain('Type the name of the upstream'));
  page.write('Type the name of the upstream', 'fra-1');
  await waitFor(() => page.submit('Remove the upstream'));
  const path = '/admin/v1/upstreams/fra-1';
  const body = { kind: 'origin', url: 'https://fra-2.example.com' };
  await waitFor(() =>
    expect(changes(sent)).toEqual([
      { method: 'PUT', path, body },
      { method: 'DELETE', path, body: null },
    ]),
  );
});

test('the audit log is searched by the server, in pages, and an entry opens to its new values', async () => {
  const entry = (id: number) => ({
    ...{ id: String(id), created_at: NOW - 9_000 + id, key: 'k', key_tenant: 'operator', address: null },
    ...{ request_id: 'r', action: 'changePlan', target: `plan-${id}`, tenant: null },
    changes: id === 51 ? { name: 'خطة' } : null,
  });
  const queries: Record<string, string>[] = [];
  const { page } = await openOperator('audit', 'tenant:t2', 'plan-100', ({ path }) => {
    const url = new URL(path, 'http://test.local');
    if (url.pathname !== '/admin/v1/audit') return undefined;
    queries.push(Object.fromEntries(url.searchParams));
    const last = Number(url.searchParams.get('after') ?? 101) - 1;
    return { data: Array.from({ length: 50 }, (_, at) => entry(last - at)), has_more: last > 50 };
  });
  expect(page.field('Tenant')).toBeUndefined();
  page.press('Older');
  await waitFor(() => expect(page.all('tr', 'plan-1')).not.toEqual([]));
  page.write('Find', 'plan-');
  page.write('Action', 'changePlan');
  page.submit('Search');
  await waitFor(() => expect(queries).toHaveLength(3));
  const days = { limit: '50', from: '2026-10-30', to: '2026-11-29' };
  expect(queries).toEqual([
    days,
    { ...days, after: '51' },
    { ...days, search: 'plan-', action: 'changePlan' },
  ]);
  await waitFor(() => expect(page.all('tr', 'plan-51')).toHaveLength(1));
  page.all('tr', 'plan-51')[0]!.children[0]!.children[0]!.dispatch('click');
  await waitFor(() => expect(page.all('pre', 'خطة')).toHaveLength(1));
});
