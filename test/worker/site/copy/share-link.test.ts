import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readShared, type SharedText, shareLink } from '../../../../worker/site/copy/share-link.ts';
import { runs } from '../../../support/random.ts';

const FIELDS = ['temperature', 'logprobs', 'stop', 'json_schema'];
const BASE = 'https://endpoint.test/';
const KEY = `sk-${'a1B2c3D4e5F6g7H8'}-${'x'.repeat(43)}012345`;

const SHARED: SharedText = {
  text: 'Once upon a time\n🙂 \ud800',
  mark: 4,
  parameters: { temperature: 0.3, logprobs: null, stop: ['\n'], json_schema: { type: 'object' } },
  model: 'default',
  dialect: 'vllm',
};

const made = (shared: SharedText, keys: readonly string[] = []) =>
  shareLink(BASE, shared, keys, '2026-11-29');
const packed = (result: Awaited<ReturnType<typeof shareLink>>) =>
  'link' in result ? result.link.slice(`${BASE}#/share=`.length) : '';

test('a link brings text, mark, parameters, model, dialect and its day', async () => {
  const link = packed(await made(SHARED));
  expect(link).toMatch(/^[\w-]+$/);
  expect(await readShared(link, FIELDS)).toEqual({ ...SHARED, made: '2026-11-29' });
});

test('a key in any field, value or name never gets into a link', async () => {
  const ownKey = fc.constantFrom(KEY, 'the-operators-admin-key');
  const around = fc.tuple(fc.string(), fc.string());
  const places: ((text: string) => SharedText)[] = [
    (text) => ({ ...SHARED, text }),
    (text) => ({ ...SHARED, model: text }),
    (text) => ({ ...SHARED, dialect: text }),
    (text) => ({ ...SHARED, parameters: { user: text } }),
    (text) => ({ ...SHARED, parameters: { stop: ['a', text] } }),
    (text) => ({ ...SHARED, parameters: { json_schema: { properties: { [text]: {} } } } }),
    (text) => ({ ...SHARED, parameters: { [text]: 1 } }),
  ];
  const property = fc.asyncProperty(
    ownKey,
    around,
    fc.constantFrom(...places),
    async (key, [before, after], place) => {
      expect(await made(place(`${before} ${key} ${after}`), [key])).toHaveProperty('refused');
    },
  );
  await fc.assert(property, { numRuns: runs(200) });
  expect(await made({ ...SHARED, parameters: { user: KEY } })).toEqual({
    refused: 'parameters.user has an API key, which a link would give away. Take the key out first.',
  });
});

test('a text that is too long for a link is refused with its length and the limit', async () => {
  const numbers = Array.from({ length: 20_000 }, (_, at) => (at * at * 7_919) % 1_000_003).join(' ');
  expect(await made({ ...SHARED, text: numbers })).toEqual({
    refused: expect.stringMatching(
      /^The link would have [\d,]+ characters; the limit is 16,000 characters\. Shorten/,
    ),
  });
});

test('a link of others sets only fields of requests, and a broken or endless one brings nothing', async () => {
  const parameters = { temperature: 1, onload: 'x', __proto__: null, prompt: 'other' };
  const strange = { ...SHARED, mark: 99, dialect: 'none', parameters };
  const { parameters: taken, mark, dialect } = (await readShared(packed(await made(strange)), FIELDS))!;
  expect([taken, mark, dialect]).toEqual([{ temperature: 1 }, null, null]);
  const whole = packed(await made(SHARED));
  for (const part of ['', 'a', '%', whole.slice(0, -8), `${whole}AAAA`]) {
    const read = await readShared(part, FIELDS);
    expect(read, part).toBeNull();
  }
  const endless = packed(await made({ ...SHARED, text: 'a'.repeat(2_000_000) }));
  expect(endless).not.toBe('');
  expect(await readShared(endless, FIELDS)).toBeNull();
});
