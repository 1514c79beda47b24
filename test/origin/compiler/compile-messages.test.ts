import { expect, test } from 'vitest';
import { failureOutcome, programOf } from '../../../origin/compiler/compile-messages.ts';
import { bugTrace } from '../../../shared/error-details.ts';
import { ApiError, toApiError } from '../../../shared/errors.ts';

/** What the origin catches of an error in the compiler, after its way between processes. */
function caught(thrown: unknown): unknown {
  try {
    programOf(structuredClone(failureOutcome(thrown)));
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}

test('a refused constraint is the same refusal in the origin', () => {
  const refusal = new ApiError('invalid_value', 'Too large.', { param: 'json_schema' });
  expect(caught(refusal)).toEqual(refusal);
});

test('a defect of the compiler is a 500 with its name and frames for the log, without the message', () => {
  const defect = new TypeError('"the caller\'s schema" has no type');
  const error = caught(defect);
  expect(toApiError(error).status).toBe(500);
  expect(bugTrace(error)).toEqual(bugTrace(defect));
  expect(bugTrace(defect).frames.length).toBeGreaterThan(0);
  expect(String((error as Error).stack) + (error as Error).message).not.toContain('schema" has');
});
