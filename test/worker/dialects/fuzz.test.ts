import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import { ERROR_TABLE } from '../../../shared/errors.ts';
import { runs } from '../../support/random.ts';
import { bodies } from '../../tools/fuzz/bodies.ts';
import { payloadsOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

/** Long run: `FUZZ_BODIES=20000 npx vitest run test/worker/dialects/fuzz.test.ts`. */
const BODIES = Number(process.env.FUZZ_BODIES ?? runs(1_600));
const AT_ONCE = 8;

const { worker, origin } = workerForTests({ MODELS_TTL_MS: '60000' });

const STATUSES: ReadonlySet<number> = new Set(Object.values(ERROR_TABLE).map(({ status }) => status));

async function check(bytes: Uint8Array): Promise<void> {
  const response = await worker.request('/v1/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(bytes),
  });
  const text = await response.text();
  const shown = `${response.status} ${text.slice(0, 300)} for ${Buffer.from(bytes).toString().slice(0, 500)}`;
  expect(response.headers.get('x-request-id'), shown).toBeTruthy();
  if (response.status === 200) {
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) payloadsOf(text);
    else expect(JSON.parse(text), shown).toHaveProperty('choices');
    return;
  }
  expect(response.status, shown).toBeLessThan(500);
  expect(STATUSES.has(response.status), shown).toBe(true);
  const { error } = errorResponseBody.parse(JSON.parse(text));
  expect(error.message.length, shown).toBeLessThan(2_000);
}

test(`answers ${BODIES} random and mutated bodies with a completion or a 4xx, never with a 5xx or a hang`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(bodies, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (some) => {
      await Promise.all(some.map(check));
    }),
    { numRuns: Math.ceil(BODIES / AT_ONCE), endOnFailure: true },
  );
  expect(origin.requests.length).toBeGreaterThan(BODIES / 10);
});
