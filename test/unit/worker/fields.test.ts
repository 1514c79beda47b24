import { describe, expect, test } from 'vitest';
import { completionRequest } from '../../../shared/completion.ts';
import { FIELD_TABLE } from './field-table.ts';
import { parse, refusal } from './parsing.ts';

const short = (value: unknown): string => {
  const json = JSON.stringify(value);
  return json.length > 60 ? `${json.slice(0, 60)}…` : json;
};

test('the table names every field of the request but the model', () => {
  const fields = Object.keys(completionRequest.shape).filter((field) => field !== 'model');
  expect(Object.keys(FIELD_TABLE).toSorted()).toEqual(fields.toSorted());
});

describe.each(Object.entries(FIELD_TABLE))('%s', (field, { good, bad, beside }) => {
  test('absent and null mean the same', () => {
    if (field === 'prompt') {
      expect(refusal({ prompt: undefined })?.code).toBe('missing_required_parameter');
      expect(refusal({ prompt: null })?.code).toBe('missing_required_parameter');
      return;
    }
    expect(parse({ [field]: null })).toEqual(parse({}));
  });

  test.each(good.map((value) => [short(value), value]))('accepts %s', (_, value) => {
    expect(refusal({ ...beside, [field]: value })).toBeNull();
  });

  test.each(bad.map((row) => [short(row[0]), ...row] as const))(
    'refuses %s',
    (_, value, code, param = field) => {
      const error = refusal({ ...beside, [field]: value });
      expect(error).toMatchObject({ code, param, type: 'invalid_request_error' });
      expect(error?.message).toContain(param.split('.')[0]?.split('[')[0]);
    },
  );
});
