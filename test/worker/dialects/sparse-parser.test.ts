import { completionRequest } from '@continuo/shared/completion.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRequest, sparseParser } from '../../../worker/dialects/parse-request.ts';
import { runs } from '../../support/random.ts';

const parseFields = sparseParser(completionRequest);

const outcome = (parse: () => unknown): unknown => {
  try {
    return parse();
  } catch (thrown) {
    return thrown;
  }
};

test('a parser of the fields that are present gives the results and errors of the whole schema', () => {
  const fields = [...Object.keys(completionRequest.shape), 'unknown', 'toString'];
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.integer({ min: 0, max: 4 }), fc.constant(true));
  const optional = fc.dictionary(fc.constantFrom(...fields), value, { maxKeys: 8 });
  const body = fc.tuple(
    optional,
    fc.record({ model: fc.string(), prompt: fc.string() }, { requiredKeys: [] }),
  );
  fc.assert(
    fc.property(body, ([some, more]) => {
      const whole = { ...some, ...more };
      const expected = outcome(() => parseRequest(completionRequest, whole));
      expect(outcome(() => parseFields(whole))).toStrictEqual(expected);
    }),
    { numRuns: runs(2000) },
  );
});
