import { expect, test, vi } from 'vitest';
import { waitFor } from '../../../support/wait-for.ts';
import { OWN, openView, refusal } from './fake-account.ts';

const EXPIRED = refusal.bind(null, 401, 'invalid_api_key');

test('without a key, the view asks for one and sends nothing', () => {
  const { page, sent, session } = openView('#/account', OWN, undefined, { key: null });
  expect(page.text()).toContain('This page has none');
  page.press('Enter a key');
  expect(session.askForKey.value).toBe(true);
  expect(sent).toEqual([]);
});

test('the view shows whose key it is, and asks with the key of the page', async () => {
  const { page, sent } = openView('#/account', OWN);
  expect(page.text()).toContain('Loading');
  await waitFor(() => expect(page.text()).toContain('Ink and Paper'));
  expect(page.text()).toContain('Key Writer own-id');
  expect(sent[0]).toMatchObject({ method: 'GET', path: '/v1/key', key: 'Bearer sk-test' });
});

test('a key that is refused while the view is open takes all that it has shown away', async () => {
  vi.useFakeTimers();
  let isRevoked = false;
  const { page } = openView('#/account', OWN, () => (isRevoked ? EXPIRED() : undefined));
  await waitFor(() => expect(page.text()).toContain('Ink and Paper'));
  isRevoked = true;
  await vi.advanceTimersByTimeAsync(5_500);
  expect(page.text()).toContain('The server refuses this key');
  expect(page.text()).toContain('The reason: invalid_api_key.');
  expect(page.text()).not.toContain('Ink and Paper');
  isRevoked = false;
  page.press('Try again');
  await waitFor(() => expect(page.text()).toContain('Ink and Paper'));
});

test('a tab that sleeps for an hour asks nothing, and asks anew when it is seen again', async () => {
  vi.useFakeTimers();
  const seen = new EventTarget();
  vi.stubGlobal('addEventListener', seen.addEventListener.bind(seen));
  let isRevoked = false;
  const { page, sent } = openView('#/account/requests', OWN, () => (isRevoked ? EXPIRED() : undefined));
  await waitFor(() => expect(page.text()).toContain('No requests'));
  const turn = (hidden: boolean) => {
    Object.assign(document, { hidden });
    seen.dispatchEvent(new Event('visibilitychange'));
  };
  turn(true);
  const { length } = sent;
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(sent).toHaveLength(length);
  isRevoked = true;
  turn(false);
  await waitFor(() => expect(page.text()).toContain('The server refuses this key'));
  expect(page.text()).not.toContain('Ink and Paper');
});

test('a failure says why, and a retry shows the account', async () => {
  let fails = true;
  const { page } = openView('#/account', OWN, () =>
    fails ? refusal(500, 'internal_error', 'server_error') : undefined,
  );
  await waitFor(() => expect(page.text()).toContain('The server had an error'));
  fails = false;
  page.press('Retry');
  await waitFor(() => expect(page.text()).toContain('Ink and Paper'));
});

test('an account that may not be read says so, and does not ask for another key', async () => {
  const { page } = openView('#/account', OWN, () => refusal(403, 'tenant_suspended', 'permission_error'));
  await waitFor(() => expect(page.text()).toContain('This key may not do this'));
  expect(page.text()).toContain('The reason: tenant_suspended.');
  expect(page.text()).not.toContain('Enter a key');
});
