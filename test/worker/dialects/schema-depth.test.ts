import { expect, test } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { MAX_SCHEMA_DEPTH } from '../../../shared/json-fields.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

/** A schema may be as deep in a body as the compiler allows, in any field and form. */

const { worker, origin } = sharedWorker();

const PLACES: Readonly<Record<string, (schema: unknown) => object>> = {
  json_schema: (schema) => ({ json_schema: schema }),
  guided_json: (schema) => ({ guided_json: schema }),
  'response_format.schema': (schema) => ({ response_format: { type: 'json_object', schema } }),
  'response_format.json_schema.schema': (schema) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } },
  }),
  'structured_outputs.json': (schema) => ({ structured_outputs: { json: schema } }),
  'grammar.value': (schema) => ({ grammar: { type: 'json_schema', value: schema } }),
  'grammar.value.grammars[0].json_schema': (schema) => ({
    grammar: { type: 'llguidance', value: { grammars: [{ json_schema: schema }] } },
  }),
};

/** Returns a schema with this number of levels, an even one: objects in one another. */
const nested = (levels: number): object =>
  levels === 2
    ? { type: 'object', properties: {}, additionalProperties: false }
    : { type: 'object', properties: { a: nested(levels - 2) }, required: ['a'], additionalProperties: false };

const send = (fields: object) => worker.post({ model: 'default', prompt: 'x', ...fields });

const deepest = nested(MAX_SCHEMA_DEPTH);

test.each(Object.entries(PLACES))('%s takes the deepest schema as an object and as text', async (_, at) => {
  const statuses = [(await send(at(deepest))).status, (await send(at(JSON.stringify(deepest)))).status];
  expect(statuses).toEqual([200, 200]);
  // The origin gets a schema as text, with which it does nothing until the compiler parses it.
  const constraint = { type: 'json_schema', value: JSON.stringify(deepest) };
  expect(origin.requests.map((request) => request.constraint)).toEqual([constraint, constraint]);
});

test.each(Object.entries(PLACES))('%s refuses a deeper one by its name in both forms', async (field, at) => {
  for (const schema of [{ items: deepest }, JSON.stringify({ items: deepest })]) {
    const response = await send(at(schema));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        code: 'invalid_json_schema',
        param: field,
        message: `Invalid '${field}': the schema nests deeper than 256 levels.`,
      },
    });
  }
});

test('takes the deepest schema as the parameters of a forced tool', async () => {
  const tools = [{ type: 'function', function: { name: 'f', strict: true, parameters: deepest } }];
  const tool_choice = { type: 'function', function: { name: 'f' } };
  expect((await send({ tools, tool_choice })).status).toBe(200);
});

test('takes ten objects with optional members in strict mode', async () => {
  const optional = (levels: number): object =>
    levels === 0
      ? { type: 'string' }
      : {
          type: 'object',
          additionalProperties: false,
          required: ['a'],
          properties: { a: { anyOf: [optional(levels - 1), { type: 'null' }] } },
        };
  const fields = PLACES['response_format.json_schema.schema']!(optional(10));
  const response = await worker.post(
    { model: 'default', prompt: 'x', ...fields },
    { headers: { 'x-dialect': 'openai' } },
  );
  expect(response.status).toBe(200);
});

test('the compiler accepts the deepest schema', () => {
  expect(() => compileProgram({ type: 'json_schema', value: deepest })).not.toThrow();
});
