import * as answers from '@continuo/shared/completion-response.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { DOCUMENTED_AS } from '@continuo/shared/json-fields.ts';
import { dialectName } from '@continuo/shared/tenant.ts';
import * as z from 'zod';
import { DIALECT_HEADER } from '../dialects/dialect.ts';
import {
  CHALLENGE_HEADERS,
  COMMON_HEADERS,
  type HeaderDescriptions,
  LIMIT_HEADERS,
  REQUEST_ID_HEADER,
  RETRY_HEADERS,
} from '../http/headers.ts';
import { type DocumentedOperation, TAGS } from './documented-operation.ts';
import { OPERATIONS } from './operations.ts';

interface DocumentedRoute {
  readonly method: string;
  /** The router's pattern. */
  readonly path: string;
}

const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const headersOf = (described: HeaderDescriptions): Json =>
  Object.fromEntries(
    Object.entries(described).map(([name, description]) => [
      name,
      { description, schema: { type: 'string' } },
    ]),
  );

/** Returns the headers of all responses of an operation. */
const common = ({ limited = false }: { readonly limited?: boolean }): HeaderDescriptions => ({
  ...COMMON_HEADERS,
  ...(limited ? LIMIT_HEADERS : {}),
});

/** Returns whether errors of this status have retry headers. */
const hasRetryHeaders = (status: number): boolean => status >= 500 || [408, 409, 429].includes(status);

/** Describes every error status with its codes and one example. */
export function errorResponses(operation: Pick<DocumentedOperation, 'errors' | 'limited'>): Json {
  const byStatus = Map.groupBy(
    operation.errors.map((code) => new ApiError(code, 'Says what is wrong and what to do.')),
    ({ status }) => status,
  );
  return Object.fromEntries(
    [...byStatus].map(([status, ones]) => [
      String(status),
      {
        description: [...new Set(ones.map((error) => error.envelope().error.code))].join(', '),
        headers: headersOf({
          ...common(operation),
          ...(hasRetryHeaders(status) ? RETRY_HEADERS : {}),
          ...(status === 401 ? CHALLENGE_HEADERS : {}),
        }),
        content: { 'application/json': { schema: reference('Error'), example: ones[0]!.envelope() } },
      },
    ]),
  );
}

function successResponse(operation: DocumentedOperation): Json {
  const { answer, events, file, answerHeaders } = operation;
  const content: Json = {};
  if (answer) content['application/json'] = { schema: reference(answer.name), example: answer.example };
  if (events) content['text/event-stream'] = { schema: reference(events.name) };
  if (file) content['application/jsonl'] = { schema: { type: 'string' } };
  return { description: 'Success', headers: headersOf({ ...common(operation), ...answerHeaders }), content };
}

/** Header parameters of every operation. */
const TRACING: HeaderDescriptions = {
  [REQUEST_ID_HEADER]: 'Your own id of the request: at most 128 letters, digits and characters of `_.:-`.',
  traceparent: 'W3C trace context. The endpoint sends it to the model server.',
};

function parametersOf(path: string, { query = {}, headers = {}, isOpen }: DocumentedOperation): Json[] {
  const text = { type: 'string' };
  const optional = (where: string, described: HeaderDescriptions): Json[] =>
    Object.entries(described).map(([name, description]) => ({ name, in: where, description, schema: text }));
  const parameters = [...optional('query', query), ...optional('header', { ...headers, ...TRACING })];
  if (path.includes(':rest')) {
    const noun = /^\/v1\/(file|batch|model|key)/.exec(path)?.[1] ?? 'completion';
    const description = `Id of the ${noun}.`;
    parameters.push({ name: 'id', in: 'path', required: true, description, schema: text });
  }
  if (!isOpen) {
    parameters.push({
      name: DIALECT_HEADER,
      in: 'header',
      description:
        "Selects the dialect: the defaults and response details of another server. If absent, the account's dialect.",
      schema: { type: 'string', enum: dialectName.options },
    });
  }
  return parameters;
}

function operationObject(path: string, operation: DocumentedOperation): Json {
  const { body, form, id, summary, tag, isOpen } = operation;
  const examples = Object.entries(body?.examples ?? {}).map(([name, value]) => [name, { value }]);
  return {
    operationId: id,
    summary,
    tags: [tag],
    security: isOpen ? [] : [{ bearer: [] }, { header: [] }],
    parameters: parametersOf(path, operation),
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: reference(body.name), examples: Object.fromEntries(examples) },
        },
      },
    }),
    ...(form && {
      requestBody: { required: true, content: { 'multipart/form-data': { schema: reference(form.name) } } },
    }),
    responses: { [operation.status ?? 200]: successResponse(operation), ...errorResponses(operation) },
  };
}

function componentSchemas(operations: readonly DocumentedOperation[]): Json {
  const named = operations.flatMap(({ body, form, answer, events }) =>
    [body, form, answer, events].filter((schema) => schema !== undefined),
  );
  const schemas = new Map(named.map(({ name, schema }) => [name, schema]));
  const json = [...schemas].map(([name, schema]) => [name, jsonSchema(schema, 'input')]);
  return { ...Object.fromEntries(json), Error: jsonSchema(answers.errorResponseBody, 'input') };
}

/** Returns the OpenAPI 3.1 document of the routes that have an entry in OPERATIONS. */
export function openApiDocument(routes: readonly DocumentedRoute[]): Json {
  const known = routes.flatMap(({ method, path }) => {
    const operation = OPERATIONS[`${method} ${path}`];
    return operation ? [{ method, path, operation }] : [];
  });
  const paths = Map.groupBy(known, ({ path }) => path.replace(/:rest\+?/, '{id}'));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Continuo',
      version: '1',
      description: 'Text completions, compatible with the clients of several systems.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(
      [...paths].map(([path, methods]) => [
        path,
        Object.fromEntries(
          methods.map(({ method, path: pattern, operation }) => [
            method.toLowerCase(),
            operationObject(pattern, operation),
          ]),
        ),
      ]),
    ),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        header: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      schemas: componentSchemas(known.map(({ operation }) => operation)),
    },
  };
}

export type Json = Record<string, unknown>;

/** Converts a zod schema to JSON Schema: of what callers send (`input`), or of what they get (`output`). */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema: target }: { readonly jsonSchema: Json }) => {
      const documentedAs = target[DOCUMENTED_AS];
      if (!(documentedAs instanceof z.ZodType)) return;
      const { description } = target;
      for (const key of Object.keys(target)) delete target[key];
      Object.assign(target, jsonSchema(documentedAs, io), description && { description });
    },
  });
  return json;
}
