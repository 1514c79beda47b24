import { errorResponseBody } from '@continuo/shared/completion-response.ts';
import type { ErrorCode } from '@continuo/shared/errors.ts';
import { errorResponses, type Json, jsonSchema } from '../openapi/document.ts';
import { AUTHENTICATED, BODY as BODY_ERRORS } from '../openapi/documented-operation.ts';
import { ADMIN_BASE, type AdminOperation, operationId } from './admin-operation.ts';

const QUERY: readonly ErrorCode[] = [
  'invalid_value',
  'invalid_type',
  'unsupported_parameter',
  'integer_above_max_value',
  'integer_below_min_value',
];

const BODY: readonly ErrorCode[] = [
  ...new Set([...QUERY, ...BODY_ERRORS]),
  'conflicting_parameters',
  'empty_string',
  'string_above_max_length',
  'empty_array',
  'decimal_above_max_value',
  'conflict',
];

/** Returns the OpenAPI 3.1 document of the admin API. */
export function adminOpenApiDocument(operations: readonly AdminOperation[]): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const path = ADMIN_BASE + operation.path;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Continuo admin API',
      version: '1',
      description: 'Plans, tenants, API keys and usage. Every request needs an admin key.',
    },
    servers: [{ url: '/' }],
    tags: [...new Set(operations.map(tagOf))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: jsonSchema(errorResponseBody, 'output') },
    },
    security: [{ adminKey: [] }],
  };
}

/** `/keys/{id}` → `Keys`. */
function tagOf({ path }: AdminOperation): string {
  const name = path.split('/')[1]!;
  return name[0]!.toUpperCase() + name.slice(1);
}

function describe(operation: AdminOperation): Json {
  const { summary, status = 200, path, body, query, example, response } = operation;
  const errors = [
    ...AUTHENTICATED,
    ...(path.includes('{id}') ? ['not_found' as const] : []),
    ...(body ? BODY : query ? QUERY : []),
  ];
  return {
    operationId: operationId(operation),
    summary,
    tags: [tagOf(operation)],
    parameters: parametersOf(operation),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: jsonSchema(body, 'input'), ...(example && { example }) } },
      },
    }),
    responses: {
      [status]: {
        description: 'Success',
        content: { 'application/json': { schema: jsonSchema(response, 'output') } },
      },
      ...errorResponses({ errors }),
    },
  };
}

function parametersOf({ path, query }: AdminOperation): unknown[] {
  const description = 'Id of the record.';
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, description, schema: { type: 'string' } }]
    : [];
  const { properties = {} } = (query ? jsonSchema(query, 'input') : {}) as {
    properties?: Record<string, Json>;
  };
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    description,
    schema,
  }));
  return [...inPath, ...inQuery];
}
