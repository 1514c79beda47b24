import { describe, expect, test } from 'vitest';
import { completionRequest } from '../../../shared/completion.ts';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { FIELD_TABLE, IGNORED_FIELDS, SERVICE_FIELDS } from './field-table.ts';

/** Every field over HTTP: absent, null, at and beyond its bounds, and with another type. */

// The longest list of token ids is larger than the default limit of a body.
const { worker, origin } = workerForTests({ MODELS_TTL_MS: '60000', MAX_BODY_BYTES: '4194304' });

const send = (fields: Readonly<Record<string, unknown>>) =>
  worker.post({ model: 'default', prompt: 'x', ...fields });

const short = (value: unknown): string => {
  const json = JSON.stringify(value);
  return json.length > 60 ? `${json.slice(0, 60)}…` : json;
};

/** Returns the requests that reached the origin, without their ids. */
const asked = (): Partial<GenerationRequest>[] =>
  origin.requests.map((one) => ({ ...one, requestId: '', account: '' }));

test('lists every field of the request except the model', () => {
  const fields = Object.keys(completionRequest.shape).filter((field) => field !== 'model');
  expect(Object.keys(FIELD_TABLE).toSorted()).toEqual(fields.toSorted());
});

describe.each(Object.entries(FIELD_TABLE))('%s', (field, { good, bad, beside }) => {
  test('treats null as absent, and requires the prompt', async () => {
    if (field === 'prompt') {
      const { error } = errorResponseBody.parse(await (await send({ prompt: undefined })).json());
      expect(error).toMatchObject({ code: 'missing_required_parameter', param: 'prompt' });
      return;
    }
    expect([(await send({})).status, (await send({ [field]: null })).status]).toEqual([200, 200]);
    const [absent, empty] = asked();
    expect(empty).toEqual(absent);
  });

  test.runIf(good.length > 0)('accepts its good values, including bounds', async () => {
    const answers = await Promise.all(
      good.map(async (value) => {
        const response = await send({ ...beside, [field]: value });
        return [short(value), response.status, response.status === 200 || (await response.text())];
      }),
    );
    expect(answers).toEqual(good.map((value) => [short(value), 200, true]));
    expect(origin.requests).toHaveLength(good.length);
  });

  test('rejects all other values with the field’s name, and charges nothing', async () => {
    const answers = await Promise.all(
      bad.map(async ([value]) => {
        const response = await send({ ...beside, [field]: value });
        const { error } = errorResponseBody.parse(await response.json());
        expect(error.message).toContain(field);
        return [short(value), response.status, error.type, error.code, error.param];
      }),
    );
    const expected = bad.map(([value, code, param = field]) => {
      return [short(value), 400, 'invalid_request_error', code, param];
    });
    expect(answers).toEqual(expected);
    expect(origin.requests).toEqual([]);
  });
});

test('names the bounds of a field for numbers that no double holds exactly', async () => {
  const messages = [1e20, -1e20].map(async (n) => {
    return errorResponseBody.parse(await (await send({ n })).json()).error.message;
  });
  expect(await Promise.all(messages)).toEqual([
    expect.stringContaining('Expected a value <= 128, but got 100000000000000000000 instead.'),
    expect.stringContaining('Expected a value >= 1, but got -100000000000000000000 instead.'),
  ]);
});

test.each([...IGNORED_FIELDS, ...SERVICE_FIELDS])('accepts and ignores %s', async (field) => {
  const values = [0, 'x', true, [{}], { a: { b: [] } }, null];
  const statuses = await Promise.all(values.map(async (value) => (await send({ [field]: value })).status));
  expect(statuses).toEqual(values.map(() => 200));
  await send({});
  const all = asked();
  expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(1);
});
