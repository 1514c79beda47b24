import { expect, test } from 'vitest';
import { waitFor } from '../../../support/wait-for.ts';
import { refusal } from '../account/fake-account.ts';
import { changes, openOperator } from './fake-operator.ts';

const sections = (page: Awaited<ReturnType<typeof openOperator>>['page']) =>
  page.all('a').map(({ textContent }) => textContent);

test('what a key may not do is absent: other keys see nothing, those of one tenant only it', async () => {
  const { page: other, sent } = await openOperator('tenants', null, 'may do nothing of this view');
  expect(sections(other)).toEqual([]);
  expect(sent.map(({ path }) => path)).toEqual(['/v1/key']);
  const { page: bound } = await openOperator('tenants', 'tenant:t2', '1 of 1');
  expect(sections(bound)).not.toContain('Prices');
  expect(bound.all('button', 'Create a tenant')).toEqual([]);
  bound.press('tenant 2');
  await waitFor(() => expect(bound.field('Name').value).toBe('tenant 2'));
  for (const text of ['Suspend…', 'Balance…', 'Limits', 'Weight']) expect(bound.text()).not.toContain(text);
});

test('a key that only reads has no buttons that change anything', async () => {
  const { page } = await openOperator('tenants', 'read-only', '3,000 of 3,000');
  expect(page.all('button', 'Create a tenant')).toEqual([]);
  page.press('tenant 0');
  await waitFor(() => expect(page.text()).toContain('Balance…'));
  expect(page.all('button', 'Sus')).toEqual([]);
  expect(page.field('Name')).toBeUndefined();
});

test('3,000 tenants are listed in pages, newest first, and found by name, id and plan', async () => {
  const { page, sent } = await openOperator('tenants', 'owner', '1 to 50 of 3,000');
  expect(sent.filter(({ path }) => path.startsWith('/admin/v1/tenants?'))).toHaveLength(3);
  page.write('Find', 'الحبر');
  await waitFor(() => expect(page.text()).toContain('1 of 3,000'));
  page.write('Find', 'BASIC');
  await waitFor(() => expect(page.all('tr', 'tenant 0')).toHaveLength(1));
  page.write('Find', 'nobody');
  await waitFor(() => expect(page.text()).toContain('No tenant is like this.'));
});

test('a change sends the fields that were changed; an emptied limit is that of the plan again', async () => {
  const { page, sent } = await openOperator('tenants', 'owner', '3,000 of 3,000', ({ method }) =>
    method === 'PATCH' ? {} : undefined,
  );
  page.press('tenant 2');
  await waitFor(() => expect(page.text()).toContain('Limits 1 set'));
  expect(page.field('Requests per minute ').attributes.get('placeholder')).toBe('no limit');
  page.write('Tokens per day ', '');
  page.write('Money per day in units of the currency', '2.5');
  page.write('Names for models one pair per line: name: model', 'old: other');
  page.submit('Save');
  const body = {
    limits: { tokens_per_day: 'plan', micros_per_day: 2_500_000 },
    aliases: { old: 'other', gone: null },
  };
  await waitFor(() =>
    expect(changes(sent)).toEqual([{ method: 'PATCH', path: '/admin/v1/tenants/t2', body }]),
  );
});

test('tenants are suspended and erased only with their name typed, and a refusal says why', async () => {
  const { page, sent } = await openOperator('tenants', 'owner', '3,000 of 3,000', ({ method }) =>
    method === 'DELETE' ? refusal(409, 'conflict') : method === 'PATCH' ? {} : undefined,
  );
  page.write('Find', 'الحبر');
  await waitFor(() => expect(page.text()).toContain('1 of 3,000'));
  page.press('دار الحبر والورق');
  await waitFor(() => expect(page.all('button', 'Erase…')).toEqual([]));
  page.press('Suspend…');
  await waitFor(() => expect(page.text()).toContain('Type the name of the tenant'));
  page.write('Type the name of the tenant', 'دار الحبر');
  expect(() => page.submit('Suspend the tenant')).toThrow('no enabled button');
  page.write('Type the name of the tenant', 'دار الحبر والورق');
  await waitFor(() => page.submit('Suspend the tenant'));
  const suspension = { method: 'PATCH', path: '/admin/v1/tenants/t1', body: { suspended: true } };
  await waitFor(() => expect(changes(sent)).toEqual([suspension]));
  await waitFor(() => expect(page.all('form')).toEqual([]));
  page.write('Find', 't3');
  await waitFor(() => page.press('tenant 3'));
  await waitFor(() => page.press('Erase…'));
  await waitFor(() => expect(page.text()).toContain('Erase a tenant'));
  page.write('Type the name of the tenant', 'tenant 3');
  await waitFor(() => page.submit('Erase the tenant'));
  await waitFor(() => expect(page.text()).toContain('The reason: conflict.'));
});

test('a payment is in units of the currency, and one that is sent again after a failure counts once', async () => {
  let fails = true;
  const { page, sent } = await openOperator('tenants', 'billing', '3,000 of 3,000', ({ method, path }) => {
    if (path === '/admin/v1/balances/t0')
      return { paid_micros: 5_000_000, spent_micros: 1_500_000, balance_micros: 3_500_000 };
    if (method === 'POST') return fails ? refusal(503, 'server_is_overloaded') : { warning: 'No price.' };
    return undefined;
  });
  page.press('tenant 0');
  await waitFor(() => page.press('Balance…'));
  await waitFor(() => expect(page.text()).toContain('Balance3.50Paid in5.00Spent1.50'));
  page.write('Amount in units of the currency; negative for a correction', '-0.25');
  page.submit('Add');
  await waitFor(() => expect(page.text()).toContain('The reason: server_is_overloaded.'));
  fails = false;
  page.submit('Add');
  await waitFor(() => expect(page.text()).toContain('No price.'));
  const [first, second] = changes(sent);
  expect(second).toEqual(first);
  expect(first!.body).toMatchObject({ tenant: 't0', micros: -250_000 });
});

test('plans are created with their limits, and deleted with their name typed', async () => {
  const { page, sent } = await openOperator('plans', 'owner', '1 of 1', ({ method }) =>
    method === 'GET' ? undefined : {},
  );
  page.press('Create a plan');
  await waitFor(() => expect(page.field('Name')).toBeDefined());
  page.write('Name', 'Large');
  page.write('Id lower-case letters, digits and hyphens', 'large');
  page.write('Tokens per day ', '70');
  page.submit('Create the plan');
  const body = { id: 'large', name: 'Large', weight: 1, limits: { tokens_per_day: 70 } };
  await waitFor(() => expect(changes(sent)).toEqual([{ method: 'POST', path: '/admin/v1/plans', body }]));
  page.press('Basic');
  await waitFor(() => page.press('Delete…'));
  await waitFor(() => expect(page.text()).toContain('Type the name of the plan'));
  page.write('Type the name of the plan', 'Basic');
  await waitFor(() => page.submit('Delete the plan'));
  await waitFor(() =>
    expect(changes(sent)[1]).toEqual({ method: 'DELETE', path: '/admin/v1/plans/basic', body: null }),
  );
});

test('prices show which one is in effect, and a new one is in units per million tokens', async () => {
  const price = {
    model: 'm',
    prompt_micros: 500_000,
    cached_prompt_micros: 50_000,
    completion_micros: 1_500_000,
  };
  const now = Date.UTC(2026, 10, 29, 11, 59, 30) / 1000;
  const factors = { flex_permille: 500, batch_permille: 1_000 };
  const { page, sent } = await openOperator('prices', 'owner', '3 of 3', ({ method, path }) => {
    if (method === 'POST') return {};
    if (!path.startsWith('/admin/v1/prices')) return undefined;
    const at = [-200, -100, 100];
    return {
      data: at.map((ahead, id) => ({ ...price, ...factors, id: String(id + 1), valid_from: now + ahead })),
      has_more: false,
    };
  });
  const states = page.all('tr').slice(1);
  expect(states.map(({ textContent }) => /past|in effect|future/.exec(textContent)?.[0])).toEqual([
    'future',
    'in effect',
    'past',
  ]);
  expect(states[0]!.textContent).toContain('0.500.051.5050 %100 %');
  page.press('Set a price');
  await waitFor(() => expect(page.field('Flex % of the price')).toBeDefined());
  page.write('Model its id, not an alias', 'm');
  page.write('Prompt per million tokens', '0.4');
  page.write('Generated per million tokens', '2');
  page.write('From UTC; empty = now', '2026-12-01T00:00');
  page.submit('Set the price');
  const body = {
    ...{ model: 'm', prompt_micros: 400_000, completion_micros: 2_000_000 },
    ...{ flex_permille: 1_000, batch_permille: 1_000, valid_from: Date.UTC(2026, 11, 1) / 1000 },
  };
  await waitFor(() => expect(changes(sent)).toEqual([{ method: 'POST', path: '/admin/v1/prices', body }]));
});
