import { expect, test } from 'vitest';
import { waitFor } from '../../../../support/wait-for.ts';
import { OWN, openView, refusal, SERVER_NOW, type SentRequest } from '../fake-account.ts';

const OWNER = { ...OWN, id: 'k0', name: 'key 0', scopes: ['keys'] };

const keyOf = (at: number) => ({
  id: `k${at}`,
  name: at === 1 ? 'خادم الويب' : `key ${at}`,
  scopes: at === 0 ? ['keys'] : ['completions', 'models'],
  models: null,
  limits: {},
  created_at: SERVER_NOW / 1000 - 100 - at,
  expires_at: null,
  allowed_addresses: null,
  last_used_at: null,
  metadata: null,
  disabled: false,
  revoked_at: at === 199 ? SERVER_NOW / 1000 - 60 : null,
  replaced_by: null,
});
const KEYS = Array.from({ length: 200 }, (_, at) => keyOf(at));

const openKeys = async (reply: (request: SentRequest) => unknown = () => undefined) => {
  const view = openView('#/account/keys', OWNER, (request) => {
    if (request.path.startsWith('/v1/keys?')) return { data: KEYS, has_more: false };
    return reply(request);
  });
  await waitFor(() => expect(view.page.text()).toContain('199 of 200'));
  return view;
};

const changes = (sent: readonly SentRequest[]) =>
  sent.filter(({ method }) => method !== 'GET').map(({ method, path, body }) => ({ method, path, body }));

test('a key has sections for its scopes only, and one without scopes sees limits, usage and requests', async () => {
  const sectionsOf = async (scopes: readonly string[]) => {
    const { page } = openView('#/account', { ...OWN, scopes });
    await waitFor(() => expect(page.text()).toContain('Limits and balance'));
    expect(page.text()).toContain(scopes.length === 0 ? 'It is forNothing' : 'It is for');
    return page.all('a').map(({ textContent }) => textContent);
  };
  const always = ['Overview', 'Usage', 'Requests'];
  expect(await sectionsOf(['completions', 'models'])).toEqual([...always, 'Batches']);
  expect(await sectionsOf(['keys'])).toEqual([...always, 'Keys']);
  expect(await sectionsOf([])).toEqual(always);
});

test('200 keys are listed in pages, newest first, and found by name or id', async () => {
  const { page } = await openKeys();
  expect(page.all('tr')).toHaveLength(51);
  expect(page.text()).toContain('1 to 50 of 199');
  page.press('Next');
  await waitFor(() => expect(page.text()).toContain('51 to 100 of 199'));
  page.write('Find', 'ويب');
  await waitFor(() => expect(page.all('tr')).toHaveLength(2));
  expect(page.all('tr')[1]!.textContent).toContain('1 min ago');
  page.write('Find', 'nothing');
  await waitFor(() => expect(page.text()).toContain('No key is like this.'));
});

test('a new key stays on the page until it is stored, in all sections', async () => {
  const { page, sent } = await openKeys(({ method, body }) =>
    method === 'POST'
      ? { ...keyOf(300), ...(body as object), key: 'sk-secret', warning: 'Too much.' }
      : undefined,
  );
  page.press('Create a key');
  await waitFor(() => expect(page.field('Name')).toBeDefined());
  page.write('Name', 'new one');
  page.submit('Create the key');
  await waitFor(() => expect(page.text()).toContain('sk-secret'));
  expect(page.text()).toContain('Too much.');
  expect(changes(sent)).toMatchObject([{ method: 'POST', path: '/v1/keys', body: { name: 'new one' } }]);
  page.press('I have stored it');
  await waitFor(() => expect(page.text()).not.toContain('sk-secret'));
});

test('the server says why it refuses a key, and the fields stay', async () => {
  const { page } = await openKeys(({ method }) =>
    method === 'POST' ? refusal(400, 'invalid_value') : undefined,
  );
  page.press('Create a key');
  await waitFor(() => expect(page.field('Name')).toBeDefined());
  page.write('Name', 'new one');
  page.submit('Create the key');
  await waitFor(() => expect(page.text()).toContain('The reason: invalid_value.'));
  expect(page.field('Name').value).toBe('new one');
});

test('a refusal that comes after the dialog was closed is shown, and another dialog stays open', async () => {
  const answer = Promise.withResolvers<Response>();
  const { page } = await openKeys(({ method }) => (method === 'DELETE' ? answer.promise : undefined));
  page.press('key 2');
  await waitFor(() => page.press('Delete…'));
  await waitFor(() => expect(page.field('Type the name of the key')).toBeDefined());
  page.write('Type the name of the key', 'key 2');
  await waitFor(() => page.submit('Delete the key'));
  page.all('button').at(-1)!.dispatch('click');
  await waitFor(() => expect(page.text()).not.toContain('Type the name'));
  page.press('key 3');
  await waitFor(() => expect(page.all('button', 'Rotate…')).toHaveLength(1));
  answer.resolve(refusal(400, 'invalid_value'));
  await waitFor(() => expect(page.text()).toContain('The change was not made'));
  expect(page.text()).toContain('The reason: invalid_value.');
  expect(page.all('button', 'Rotate…')).toHaveLength(1);
  page.press('Dismiss');
  await waitFor(() => expect(page.text()).not.toContain('The change was not made'));
});

test('a key is rotated with an overlap in the chosen unit', async () => {
  const { page, sent } = await openKeys(({ method }) =>
    method === 'POST' ? { ...keyOf(300), key: 'sk-next' } : undefined,
  );
  page.press('key 2');
  await waitFor(() => page.press('Rotate…'));
  await waitFor(() => expect(page.field('Overlap')).toBeDefined());
  page.write('Overlap', '1.5');
  page.submit('Rotate');
  await waitFor(() => expect(page.text()).toContain('sk-next'));
  expect(changes(sent)).toEqual([
    { method: 'POST', path: '/v1/keys/k2/rotate', body: { overlap_seconds: 5_400 } },
  ]);
});

test('a key is deleted only after its name was typed', async () => {
  const { page, sent } = await openKeys(({ method }) => (method === 'DELETE' ? keyOf(1) : undefined));
  page.press('خادم الويب');
  await waitFor(() => page.press('Delete…'));
  await waitFor(() => expect(page.field('Type the name of the key')).toBeDefined());
  expect(() => page.submit('Delete the key')).toThrow('no enabled button');
  page.write('Type the name of the key', 'خادم الويب');
  await waitFor(() => page.submit('Delete the key'));
  await waitFor(() => expect(page.text()).not.toContain('Type the name'));
  expect(changes(sent)).toEqual([{ method: 'DELETE', path: '/v1/keys/k1', body: null }]);
});

test('a key is disabled; what the key in use may not do with itself is absent', async () => {
  const { page, sent } = await openKeys(({ method }) => (method === 'PATCH' ? keyOf(2) : undefined));
  page.press('key 0 this key');
  await waitFor(() => expect(page.all('button', 'Rotate…')).toHaveLength(1));
  expect(['Disable', 'Delete…', 'Save'].flatMap((text) => page.all('button', text))).toEqual([]);
  page.all('button').at(-1)!.dispatch('click');
  await waitFor(() => expect(page.all('button', 'Rotate…')).toHaveLength(0));
  page.press('key 2');
  await waitFor(() => page.press('Disable'));
  await waitFor(() =>
    expect(changes(sent)).toEqual([{ method: 'PATCH', path: '/v1/keys/k2', body: { disabled: true } }]),
  );
});
