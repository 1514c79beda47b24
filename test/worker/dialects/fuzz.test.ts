import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { completionRequest } from '../../../shared/completion.ts';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import { ERROR_TABLE } from '../../../shared/errors.ts';
import { payloadsOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { DOCUMENTED_REQUESTS } from './documents.ts';
import { FIELD_TABLE } from './field-table.ts';

/** Long run: `FUZZ_BODIES=20000 npx vitest run test/worker/dialects/fuzz.test.ts`. */
const BODIES = Number(process.env.FUZZ_BODIES ?? 1_500);
const AT_ONCE = 8;

const { worker, origin } = workerForTests({ MODELS_TTL_MS: '60000' });

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    -1,
    0,
    1,
    2,
    5,
    6,
    128,
    129,
    2 ** 31,
    2 ** 53,
    1e308,
    -0.5,
    '',
    'a',
    '\0',
    '\ud800',
    [],
    {},
    null,
    true,
  ),
);

/** Good and bad values of the table, so that bodies pass the first check. */
const known = (field: string): fc.Arbitrary<unknown> => {
  const row = Object.hasOwn(FIELD_TABLE, field) ? FIELD_TABLE[field] : undefined;
  const values = [...(row?.good ?? []), ...(row?.bad.map(([value]) => value) ?? [])];
  const small = values.filter((value) => (JSON.stringify(value)?.length ?? 0) < 10_000);
  return small.length === 0
    ? anything
    : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...small) }, anything);
};

const field = fc
  .oneof(
    { weight: 9, arbitrary: fc.constantFrom(...Object.keys(completionRequest.shape)) },
    fc.constantFrom('priority', '__proto__', 'constructor', 'toString', 'zzz'),
  )
  .chain((name) => known(name).map((value) => [name, value] as const));

const object = fc
  .record({
    base: fc.constantFrom({ model: 'default', prompt: 'Hi' }, {}, ...Object.values(DOCUMENTED_REQUESTS)),
    named: fc.boolean(),
    fields: fc.array(field, { maxLength: 6 }),
  })
  .map(({ base, named, fields }) => {
    const body = { ...base, ...(named ? { model: 'default' } : {}) };
    return JSON.stringify(Object.assign(body, Object.fromEntries(fields)));
  });

/** Valid bodies, so that enough of them reach the origin. */
const sound = fc.constantFrom(
  ...Object.entries(FIELD_TABLE)
    .flatMap(([name, { good, beside }]) =>
      good.map((value) => ({ model: 'default', prompt: 'Hi', ...beside, [name]: value })),
    )
    .map((fields) => JSON.stringify(fields))
    .filter((text) => text.length < 10_000),
);

/** Valid JSON with some bytes changed, removed or repeated. */
const mutated = fc
  .record({ text: object, at: fc.nat(400), length: fc.nat(8), put: fc.uint8Array({ maxLength: 8 }) })
  .map(({ text, at, length, put }) => {
    const bytes = Buffer.from(text);
    return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + length)]);
  });

const nested = fc
  .record({
    depth: fc.integer({ min: 1, max: 20_000 }),
    name: fc.constantFrom('prompt', 'json_schema', 'stop', 'zzz', 'tools'),
  })
  .map(
    ({ depth, name }) =>
      `{"model":"default","prompt":"a","${name}":${'['.repeat(depth)}${']'.repeat(depth)}}`,
  );

const body: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 6, arbitrary: object.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: sound.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: mutated },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: nested.map((text) => Buffer.from(text)) },
);

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

test(`answers ${BODIES} random and mutated bodies with a completion or a 4xx, never with a 5xx or a hang`, {
  timeout: 300_000 + BODIES * 100,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(body, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (bodies) => {
      await Promise.all(bodies.map(check));
    }),
    { numRuns: Math.ceil(BODIES / AT_ONCE), endOnFailure: true },
  );
  expect(origin.requests.length).toBeGreaterThan(BODIES / 10);
});
