import { expect, test } from 'vitest';
import type { KeyObject } from '../../../../../worker/site/account/api-objects.ts';
import { rightsOf, stateOf } from '../../../../../worker/site/account/keys/key-object.ts';
import { OWN } from '../fake-account.ts';

const KEY: KeyObject = {
  id: 'k1',
  tenant: 'ink',
  role: null,
  name: 'web server',
  scopes: ['completions', 'models'],
  models: null,
  limits: { tokens_per_day: 100 },
  created_at: 100,
  expires_at: null,
  allowed_addresses: null,
  last_used_at: null,
  metadata: null,
  disabled: false,
  revoked_at: null,
  replaced_by: null,
};
const NOW = 1_000;

test('a key ends when it is revoked or expires, whichever is first', () => {
  expect(stateOf(KEY, NOW)).toBe('active');
  expect(stateOf({ ...KEY, disabled: true }, NOW)).toBe('disabled');
  expect(stateOf({ ...KEY, expires_at: 1_000 }, NOW)).toBe('ended');
  expect(stateOf({ ...KEY, revoked_at: 900, expires_at: 2_000 }, NOW)).toBe('ended');
});

test('the own key may be rotated only, and an ended one not at all', () => {
  expect(rightsOf({ ...KEY, id: OWN.id }, OWN, NOW)).toEqual({ change: false, rotate: true, end: false });
  expect(rightsOf({ ...KEY, revoked_at: 1 }, OWN, NOW)).toEqual({ change: false, rotate: false, end: false });
  expect(rightsOf({ ...KEY, replaced_by: 'k2' }, OWN, NOW).rotate).toBe(false);
});

test.each([
  ['models', { models: ['small'] }, { models: ['large'] }],
  ['all models', { models: ['small'] }, { models: null }],
  ['a later end', { expires_at: 2_000 }, { expires_at: 3_000 }],
  ['no end', { expires_at: 2_000 }, { expires_at: null }],
  ['a higher limit', { limits: { tokens_per_day: 99 } }, {}],
  ['no limit', { limits: { tokens_per_month: 5 } }, {}],
  ['all networks', { allowed_addresses: ['203.0.113.0/24'] }, {}],
])('a key with %s beyond the own ones can only be ended', (_, own, key) => {
  const rights = rightsOf({ ...KEY, ...key }, { ...OWN, ...own }, NOW);
  expect(rights).toEqual({ change: false, rotate: false, end: true });
  expect(rightsOf(KEY, OWN, NOW).change).toBe(true);
});
