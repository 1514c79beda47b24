import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  draftOf,
  type KeyObject,
  keyPatch,
  newKeyBody,
  rightsOf,
  stateOf,
} from '../../../../../worker/site/account/keys/key-object.ts';
import { OWN } from '../fake-account.ts';

const KEY: KeyObject = {
  id: 'k1',
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

test('a new key has what the fields say: money in micro-units, times in UTC, one item per line', () => {
  const draft = {
    ...draftOf(null),
    name: 'مفتاح',
    expires: '2026-11-29T12:30',
    models: ' small \n\nlarge',
    networks: '2001:db8::/32',
    metadata: 'team: search\nurl: http://a:1',
    limits: { tokens_per_day: '5', micros_per_day: '1.5', tokens_per_month: '' },
  };
  expect(newKeyBody(draft)).toEqual({
    name: 'مفتاح',
    scopes: ['completions', 'models'],
    expires_at: Date.UTC(2026, 10, 29, 12, 30) / 1000,
    models: ['small', 'large'],
    allowed_addresses: ['2001:db8::/32'],
    metadata: { team: 'search', url: 'http://a:1' },
    limits: { tokens_per_day: 5, micros_per_day: 1_500_000 },
  });
});

test('a change sends only what was changed, and null for what was removed', () => {
  const key = {
    ...KEY,
    expires_at: 90_061,
    models: ['small'],
    metadata: { a: 'b' },
    limits: { tokens_per_day: 100, micros_per_day: 2_500_000 },
  };
  const before = draftOf(key);
  expect(before.limits).toEqual({ tokens_per_day: '100', micros_per_day: '2.5' });
  expect(keyPatch(before, before)).toEqual({});
  const after = { ...before, models: '', limits: { ...before.limits, micros_per_day: '', max_tokens: '9' } };
  expect(keyPatch(after, before)).toEqual({ models: null, limits: { micros_per_day: null, max_tokens: 9 } });
});

test('whatever metadata a key has, a change of one pair leaves the others as they are', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[": \n\\a-c{}]{0,6}$/));
  fc.assert(
    fc.property(fc.dictionary(text, text, { minKeys: 1, maxKeys: 4 }), (metadata) => {
      const draft = draftOf({ ...KEY, metadata });
      const changed = keyPatch({ ...draft, metadata: `${draft.metadata}\nadded-by-hand: yes` }, draft);
      expect(changed).toEqual({ metadata: { ...metadata, 'added-by-hand': 'yes' } });
      expect(keyPatch(draft, draft)).toEqual({});
    }),
  );
});
