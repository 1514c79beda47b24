import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import type { Route } from '../../../worker/http/router.ts';
import { ROUTES } from '../../../worker/routes.ts';
import { FIELD_TABLE } from '../dialects/field-table.ts';
import { undescribedFields, undocumented } from '../support/api-document.ts';
import { chunksOf } from '../support/sse.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

/** The used part of OpenAPI 3.1. Strict, so that misplaced keys are found. */
const schemaObject = z.record(z.string(), z.unknown());
const content = z.record(
  z.string(),
  z.strictObject({
    schema: schemaObject,
    example: z.unknown().optional(),
    examples: z.record(z.string(), z.strictObject({ value: z.unknown() })).optional(),
  }),
);
const operation = z.strictObject({
  operationId: z.string(),
  summary: z.string(),
  tags: z.array(z.string()).length(1),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z.array(
    z.strictObject({
      name: z.string(),
      in: z.enum(['query', 'path', 'header']),
      required: z.boolean().optional(),
      description: z.string(),
      schema: schemaObject,
    }),
  ),
  requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
  responses: z.record(
    z.string().regex(/^[1-5]\d\d$/),
    z.strictObject({
      description: z.string(),
      headers: z.record(z.string(), z.strictObject({ description: z.string(), schema: schemaObject })),
      content,
    }),
  ),
});
const document = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({
    title: z.string(),
    version: z.string(),
    description: z.string(),
    license: z.strictObject({ name: z.string(), identifier: z.string() }),
  }),
  servers: z.array(z.strictObject({ url: z.string() })),
  tags: z.array(z.strictObject({ name: z.string(), description: z.string() })),
  paths: z.record(
    z.string().startsWith('/'),
    z.partialRecord(z.enum(['get', 'post', 'put', 'patch', 'delete']), operation),
  ),
  components: z.strictObject({
    securitySchemes: z.record(z.string(), schemaObject),
    schemas: z.record(z.string().regex(/^[A-Za-z0-9._-]+$/), schemaObject),
  }),
});
type Document = z.infer<typeof document>;

let api: Document;
const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
addFormats.default(ajv);

const { worker } = sharedWorker();
beforeAll(async () => {
  api = document.parse(await (await fetch(`${worker.url}/openapi.json`)).json());
  // No component refers to another, so each can be compiled separately.
  for (const [name, schema] of Object.entries(api.components.schemas)) ajv.addSchema(schema, name);
});

function validate(name: string, value: unknown): string | null {
  const check = ajv.getSchema(name);
  if (!check) throw new Error(`No schema ${name}`);
  return check(value) ? null : ajv.errorsText(check.errors);
}

const nameOf = (schema: Readonly<Record<string, unknown>>): string =>
  String(schema.$ref).replace('#/components/schemas/', '');

const operations = () => Object.values(api.paths).flatMap((methods) => Object.values(methods));

test('has valid JSON Schemas (draft 2020-12) and resolvable references', () => {
  for (const name of Object.keys(api.components.schemas)) expect(validate(name, 0)).toBeTypeOf('string');
  const references = [...JSON.stringify(api.paths).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(10);
  for (const [, name] of references) expect(api.components.schemas).toHaveProperty([String(name)]);
  expect(new Set(operations().map(({ operationId }) => operationId)).size).toBe(operations().length);
});

test('has examples that match their schemas', () => {
  let checked = 0;
  for (const { requestBody, responses } of operations()) {
    const bodies = [requestBody, ...Object.values(responses)].flatMap((body) =>
      Object.values(body?.content ?? {}),
    );
    for (const { schema, example, examples } of bodies) {
      const values = [
        ...(example === undefined ? [] : [example]),
        ...Object.values(examples ?? {}).map(({ value }) => value),
      ];
      for (const value of values) {
        expect(validate(nameOf(schema), value)).toBeNull();
        checked += 1;
      }
    }
  }
  expect(checked).toBeGreaterThan(12);
});

test.each([
  ['/v1/completions', 'Completion'],
  ['/completion', 'NativeCompletion'],
  ['/infill', 'NativeCompletion'],
])('has examples that the Worker answers with documented responses: %s', async (path, schema) => {
  const post = api.paths[path]?.post;
  const examples = Object.values(post?.requestBody?.content['application/json']?.examples ?? {});
  expect(examples.length).toBeGreaterThan(0);
  for (const { value } of examples) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const response = await worker.request(path, { ...init, body: JSON.stringify(value) });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(undocumented(post?.responses ?? {}, response)).toEqual([]);
    if (response.headers.get('content-type') === 'application/json')
      expect(validate(schema, JSON.parse(text))).toBeNull();
    else for (const chunk of chunksOf(text)) expect(validate('CompletionChunk', chunk)).toBeNull();
  }
});

test('describes every field of every request and response, including nested fields', () => {
  const names = Object.keys(api.components.schemas);
  expect(names).toEqual(
    expect.arrayContaining(['CompletionRequest', 'Completion', 'TokenizeRequest', 'Error']),
  );
  expect(names.flatMap((name) => undescribedFields(api.components.schemas[name], name))).toEqual([]);
});

test('has an example of every body and every response', () => {
  for (const { operationId, requestBody, responses } of operations()) {
    for (const [status, { content }] of Object.entries({
      ...responses,
      ...(requestBody && { body: requestBody }),
    })) {
      const json = content['application/json'];
      const example = json?.example ?? Object.values(json?.examples ?? {})[0];
      expect(json === undefined || example !== undefined, `${operationId} ${status}`).toBe(true);
    }
  }
});

test('requires no model, because some dialects have a default', () => {
  expect(api.components.schemas.CompletionRequest?.required).toEqual(['prompt']);
});

test('accepts what the field table accepts', () => {
  for (const [field, { good }] of Object.entries(FIELD_TABLE)) {
    for (const value of good) {
      expect(validate('CompletionRequest', { model: 'a', prompt: 'b', [field]: value }), field).toBeNull();
    }
  }
});

test('rejects the wrong types of the field table', () => {
  for (const [field, { bad }] of Object.entries(FIELD_TABLE)) {
    for (const [value, code, param = field] of bad) {
      if (code !== 'invalid_type' || param !== field || (field === 'logprobs' && value === true)) continue;
      expect(
        validate('CompletionRequest', { model: 'a', prompt: 'b', [field]: value }),
        `${field} ${value}`,
      ).not.toBeNull();
    }
  }
});

type Field = Readonly<Record<string, unknown>>;

/** Returns a field's schema, one entry per type of value. */
const kindsOf = (schema: Field): Field[] =>
  Array.isArray(schema.anyOf) ? (schema.anyOf as Field[]).flatMap(kindsOf) : [schema];

/** What each kind of bound limits. */
const MEASURES: Readonly<Record<string, (value: unknown) => unknown>> = {
  minimum: (value) => value,
  maximum: (value) => value,
  minLength: (value) => (typeof value === 'string' ? [...value].length : null),
  maxLength: (value) => (typeof value === 'string' ? [...value].length : null),
  minItems: (value) => (Array.isArray(value) ? value.length : null),
  maxItems: (value) => (Array.isArray(value) ? value.length : null),
};

test('has only bounds that the field table tests on both sides', () => {
  const { properties } = api.components.schemas.CompletionRequest as { properties: Record<string, Field> };
  // The dialect sets the maximum of these.
  const elsewhere = ['model', 'logprobs', 'top_logprobs', 'n_probs', 'prompt_logprobs'];
  let checked = 0;
  for (const [field, schema] of Object.entries(properties)) {
    if (elsewhere.includes(field)) continue;
    const { good, bad } = FIELD_TABLE[field] ?? { good: [], bad: [] };
    for (const kind of kindsOf(schema)) {
      for (const [bound, measure] of Object.entries(MEASURES)) {
        const at = kind[bound];
        if (typeof at !== 'number' || (at === 0 && bound !== 'minimum' && bound !== 'maximum')) continue;
        const beyond = (value: unknown) => {
          const size = measure(value);
          return typeof size === 'number' && (bound.startsWith('min') ? size < at : size > at);
        };
        if (field !== 'images') expect(good.map(measure), `${field}: ${bound}`).toContain(at);
        expect(good.filter(beyond), `${field}: ${bound}`).toEqual([]);
        expect(bad.map(([value]) => value).some(beyond), `${field}: ${bound}`).toBe(true);
        checked += 1;
      }
    }
  }
  expect(checked).toBeGreaterThan(80);
});

test('documents every public route and method', () => {
  // The page and the documents themselves.
  const itsOwn = ({ path }: Route) =>
    !/^\/(openapi\.json|service-worker\.js|admin|assets|docs|page-key)(\/|$)/.test(path);
  const routes = ROUTES.filter(itsOwn).map(({ method, path }) => `${method} ${path.replace('+', '')}`);
  const documented = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(documented.toSorted()).toEqual(routes.toSorted());
});

test('documents every path parameter', () => {
  for (const [path, methods] of Object.entries(api.paths)) {
    const parts = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    for (const { parameters } of Object.values(methods)) {
      expect(parameters.filter((one) => one.in === 'path').map(({ name }) => name)).toEqual(parts);
    }
  }
});

test('documents exactly the possible errors of each operation', () => {
  const statuses = (path: string, method: 'get' | 'post' = 'get') =>
    Object.keys(api.paths[path]![method]!.responses).map(Number);
  expect(statuses('/health')).toEqual([200, 500]);
  expect(statuses('/v1/models')).toEqual([200, 400, 401, 403, 429, 500, 502, 503, 504]);
  expect(statuses('/v1/completions/{id}/stream')).toEqual([200, 400, 401, 403, 404, 429, 500, 503]);
  expect(operations().flatMap(({ responses }) => Object.keys(responses))).not.toContain('405');
});

test('documents resumable streams and their headers', () => {
  const headersOf = (path: string, method: 'get' | 'post') =>
    api.paths[path]?.[method]?.parameters.filter((one) => one.in === 'header').map(({ name }) => name);
  expect(headersOf('/v1/completions', 'post')).toEqual(
    expect.arrayContaining(['idempotency-key', 'x-resumable']),
  );
  expect(headersOf('/v1/completions/{id}/stream', 'get')).toContain('last-event-id');
  const { content } = api.paths['/v1/completions/{id}/stream']!.get!.responses['200']!;
  expect(Object.keys(content)).toEqual(['text/event-stream']);
});
