import { expect, test } from 'vitest';
import { type FailureKind, RequestFailure, reasonOf } from '../../../../worker/site/api/request-failure.ts';
import { adviceFor, waitBeforeRetry, waitText } from '../../../../worker/site/playground/failure-advice.ts';

test.each<readonly [FailureKind, number | null, number]>([
  ['model-loading', 500, 500],
  ['model-loading', null, 2_000],
  ['overloaded', null, 0],
])('a failure "%s" with a retry-after of %s ms is retried after %i ms', (kind, retryAfterMs, wait) => {
  expect(waitBeforeRetry(new RequestFailure(kind, 'Why.', { retryAfterMs }))).toBe(wait);
});

test.each([
  [null, 'Change the text or the parameters, then retry.'],
  ['stop[2]', 'Correct stop[2], then retry.'],
])('the advice for a rejected request with the invalid field %s is: %s', (param, todo) => {
  expect(adviceFor({ kind: 'invalid-request', param })).toEqual(['The server rejected the request', todo]);
});

test.each([
  [1, '1 s'],
  [119, '119 s'],
  [120, '2 min'],
  [3_601, '61 min'],
  [43_199, '12 h'],
  [200_000, '3 days'],
])('a wait of %i s is shown as %s', (seconds, shown) => {
  expect(waitText(seconds)).toBe(shown);
});

test('people do not read what the server says to programs without a key', () => {
  expect(reasonOf(new RequestFailure('no-key', 'Send it as a header.'))).toBe('');
  expect(reasonOf(new RequestFailure('invalid-request', 'top_p is too large.'))).toBe('top_p is too large.');
});
