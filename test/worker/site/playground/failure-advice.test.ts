import { expect, test } from 'vitest';
import { type FailureKind, RequestFailure } from '../../../../worker/site/api/request-failure.ts';
import { waitBeforeRetry } from '../../../../worker/site/playground/failure-advice.ts';

test.each<readonly [FailureKind, number | null, number]>([
  ['model-loading', 500, 500],
  ['model-loading', null, 2_000],
  ['overloaded', null, 0],
])('a failure "%s" with a retry-after of %s ms is retried after %i ms', (kind, retryAfterMs, wait) => {
  expect(waitBeforeRetry(new RequestFailure(kind, 'Why.', { retryAfterMs }))).toBe(wait);
});
