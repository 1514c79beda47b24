import fc from 'fast-check';
import { expect, test } from 'vitest';
import { written } from '../../../origin/http/notation.ts';
import { UsageAccounts } from '../../../origin/request/usage-accounts.ts';
import { failedEnd } from '../../../shared/answer/error-answer.ts';
import { StreamWriter } from '../../../shared/answer/stream-writer.ts';
import { ApiError } from '../../../shared/errors.ts';
import { type GenerationEvent, type UsageAccount, usageAccount } from '../../../shared/generation.ts';
import { UsageCount } from '../../../shared/usage-count.ts';
import { request } from '../../support/generation-request.ts';
import { writtenForm } from '../../support/written-form.ts';

const TIMINGS = { queueMs: 1, promptMs: 2, generationMs: 3 };

const FORM = writtenForm({
  envelope: { id: 'cmpl-1', created: 1, model: 'a <model>', fingerprint: 'fp' },
  answer: { streamUsage: 'continuous' },
  errorCode: 'status',
});

const COMMENT = /<!--(.*?)-->/g;
const accountsIn = (text: string): UsageAccount[] =>
  [...text.matchAll(COMMENT)].map(([, json]) => usageAccount.parse(JSON.parse(json!))!);

/** The payloads of a stream without its accounts. */
const payloads = (text: string): unknown[] =>
  text
    .replaceAll(COMMENT, '')
    .split('\n\n')
    .filter((message) => message.startsWith('data: {'))
    .map((message) => JSON.parse(message.slice('data: '.length)));

function writing({ prompts = ['x'], choices = 1, form = FORM } = {}) {
  const clock = { now: 0 };
  const account = new UsageAccounts(() => clock.now).open('a', 0);
  const one = request({ prompts, choices, stream: true });
  const notation = written({ request: one, form, account: account.snapshot, now: () => clock.now });
  const text = (...events: GenerationEvent[]): string => {
    account.observe(events);
    return notation.text(events);
  };
  return { clock, notation, text };
}

const token = (text: string, completionTokens: number): GenerationEvent => ({
  ...{ type: 'token', choice: 0, text, completionTokens },
});
const done = (completionTokens: number): GenerationEvent[] => [
  { type: 'finish', choice: 0, reason: 'length', stopReason: null, completionTokens },
  { type: 'done', usage: { promptTokens: 1, cachedTokens: 0, completionTokens }, timings: TIMINGS },
];

test('whatever the text, what a caller reads is the stream that the relay would have written, and only accounts are tags', () => {
  const pieces = fc.array(
    fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('<!--', '-->', '</', '<p>')),
    {
      minLength: 1,
      maxLength: 8,
    },
  );
  fc.assert(
    fc.property(pieces, fc.array(fc.nat(400), { minLength: 8, maxLength: 8 }), (texts, pauses) => {
      const { clock, text } = writing();
      const count = new UsageCount();
      const relay = new StreamWriter({ ...FORM, prompts: 1, choices: 1 }, () => count.usage);
      const batches = [...texts.map((piece, index) => [token(piece, index + 1)]), done(texts.length)];
      let whole = '';
      let plain = '';
      for (const [index, batch] of batches.entries()) {
        clock.now += pauses[index] ?? 0;
        whole += text(...batch);
        for (const event of batch) count.add(event);
        plain += relay.write(batch);
      }
      expect(payloads(whole)).toEqual(payloads(plain));
      expect(whole.replaceAll(COMMENT, '')).not.toContain('<');
      expect(whole.endsWith('data: [DONE]\n\n')).toBe(true);
      expect(accountsIn(whole).at(-1)).toMatchObject({
        ended: true,
        finishReasons: ['length'],
        usage: { completionTokens: texts.length },
      });
    }),
  );
});

test('an account comes first, at most every quarter of a second after that, and before the end', () => {
  const { clock, text } = writing();
  const accounts = (written: string) => accountsIn(written).map(({ usage }) => usage.completionTokens);
  expect(accounts(text({ type: 'accepted', model: 'm', promptTokens: [4] }))).toEqual([0]);
  clock.now = 249;
  expect(accounts(text(token('a', 1)))).toEqual([]);
  clock.now = 250;
  expect(accounts(text(token('b', 2)))).toEqual([2]);
  expect(text(...done(2))).toMatch(/^<!--[^<]*"ended":true[^<]*-->data: /);
});

test('a comment falls behind a silence that lasted from one sign of life to the next, whatever does not show meanwhile', () => {
  const { notation, text } = writing();
  text(token('a', 1));
  const signs: string[] = [];
  for (let tick = 0; tick < 4; tick += 1) {
    signs.push(notation.sign());
    text(token('', 2 + tick));
  }
  const comment = expect.stringMatching(/^<!--[^<]*-->: keep-alive\n\n$/);
  expect(signs).toEqual(['', comment, '', comment]);
});

test('an end is told in the account, however soon it comes behind another account', () => {
  const error: GenerationEvent = {
    ...{ type: 'error', code: 'upstream_error', message: 'x', param: null, retryable: false },
  };
  for (const end of [[error], done(0)]) {
    const { text } = writing();
    text({ type: 'accepted', model: 'm', promptTokens: [4] });
    expect(accountsIn(text(...end))).toMatchObject([{ ended: true }]);
  }
});

test('a failure is told in the account and in the caller’s dialect, and is never a clean end', () => {
  const { text } = writing();
  const end = text(
    { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 7 },
    { type: 'error', code: 'upstream_timeout', message: 'too <late>', param: null, retryable: false },
  );
  expect(accountsIn(end)).toMatchObject([{ ended: true, errorCode: 'upstream_timeout', queueMs: 7 }]);
  expect(end.replaceAll(COMMENT, '')).toBe(
    failedEnd(new ApiError('upstream_timeout', 'too <late>'), 'status').replace('<', '\\u003c'),
  );
});

test('totals stand on the last of all choices of all prompts', () => {
  const answer = { ...FORM.answer, streamUsage: 'last-choice' as const };
  const { text } = writing({ prompts: ['x', 'y'], choices: 2, form: { ...FORM, answer } });
  const ends = [3, 1, 0, 2].map((choice) => ({ ...done(0)[0]!, choice }));
  const chunks = payloads(text(...ends, done(0)[1]!)) as { choices: { index: number }[]; usage?: unknown }[];
  expect(chunks.map(({ choices: [choice] }) => choice?.index)).toEqual([3, 1, 0, 2]);
  expect(chunks.map(({ usage }) => usage !== undefined)).toEqual([false, false, false, true]);
});

test('the echo of a prompt goes to each of its choices', () => {
  const form = { ...FORM, answer: { ...FORM.answer, echo: true } };
  const { text } = writing({ prompts: ['x', 'y'], choices: 2, form });
  const chunks = payloads(text({ type: 'prompt', prompt: 1, text: 'y', ids: [1] }));
  expect(chunks).toMatchObject([
    { choices: [{ index: 2, text: 'y' }] },
    { choices: [{ index: 3, text: 'y' }] },
  ]);
});
