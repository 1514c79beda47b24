import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chunk, chunkOf } from '../../../worker/upstreams/openai-chunk.ts';
import { runs } from '../../support/random.ts';

const FIELDS = {
  choice: ['index', 'text', 'finish_reason', 'stop_reason', 'logprobs', 'prompt_logprobs', 'token_ids'],
  usage: ['prompt_tokens', 'completion_tokens', 'prompt_tokens_details', 'total_tokens'],
};

test('the check of usual chunks accepts and reads what the schema does', () => {
  const value = fc.constantFrom<unknown>(null, 0, 1, 2.5, -1, 2 ** 60, '', 'text', true, {}, []);
  const choice = fc.oneof(value, fc.dictionary(fc.constantFrom(...FIELDS.choice), value));
  const likely = fc.record({ index: fc.nat(3), text: fc.string() });
  const usage = fc.oneof(value, fc.dictionary(fc.constantFrom(...FIELDS.usage), value));
  const some = fc.tuple(likely, choice).map(([sure, more]) => ({ ...(more as object), ...sure }));
  const choices = fc.oneof(value, fc.array(fc.oneof(some, some, choice), { maxLength: 2 }));
  fc.assert(
    fc.property(fc.record({ choices, usage }, { requiredKeys: [] }), (given) => {
      const expected = chunk.safeParse(given).data ?? null;
      const found = chunkOf(given);
      if (expected === null) expect(found).toBeNull();
      else expect(found).toMatchObject(expected);
    }),
    { numRuns: runs(5000) },
  );
});
