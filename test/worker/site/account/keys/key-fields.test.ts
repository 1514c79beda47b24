import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bodyOf, textsOf } from '../../../../../worker/site/account/form/form-fields.ts';
import { keyFields } from '../../../../../worker/site/account/keys/key-fields.ts';

const LIMITS = { tokens_per_day: null, micros_per_day: null, tokens_per_month: null, max_tokens: null };
const NEW = keyFields({ limits: LIMITS }, true);
const CHANGED = keyFields({ limits: LIMITS }, false);

test('a new key has what the fields say: money in micro-units, times in UTC, one item per line', () => {
  const texts = {
    ...textsOf(NEW, null),
    name: 'مفتاح',
    expires_at: '2026-11-29T12:30',
    models: ' small \n\nlarge',
    allowed_addresses: '2001:db8::/32',
    metadata: 'team: search\nurl: http://a:1',
    'limits.tokens_per_day': '5',
    'limits.micros_per_day': '1.5',
    'limits.tokens_per_month': '',
  };
  expect(bodyOf(NEW, texts, null)).toEqual({
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
    ...{ name: 'web server', expires_at: 90_061, models: ['small'], allowed_addresses: null },
    ...{ metadata: { a: 'b' }, limits: { tokens_per_day: 100, micros_per_day: 2_500_000 } },
  };
  const before = textsOf(CHANGED, key);
  expect(before).toMatchObject({ 'limits.tokens_per_day': '100', 'limits.micros_per_day': '2.5' });
  expect(bodyOf(CHANGED, before, key)).toEqual({});
  const after = { ...before, models: '', 'limits.micros_per_day': '', 'limits.max_tokens': '9' };
  expect(bodyOf(CHANGED, after, key)).toEqual({
    models: null,
    limits: { micros_per_day: null, max_tokens: 9 },
  });
});

test('whatever metadata a key has, a change of one pair leaves the others as they are', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[": \n\\a-c{}]{0,6}$/));
  fc.assert(
    fc.property(fc.dictionary(text, text, { minKeys: 1, maxKeys: 4 }), (metadata) => {
      const key = { metadata, limits: {} };
      const texts = textsOf(CHANGED, key);
      const changed = bodyOf(CHANGED, { ...texts, metadata: `${texts.metadata}\nadded-by-hand: yes` }, key);
      expect(changed).toEqual({ metadata: { ...metadata, 'added-by-hand': 'yes' } });
      expect(bodyOf(CHANGED, texts, key)).toEqual({});
    }),
  );
});
