import * as z from 'zod';
import { errorResponseBody } from '../../shared/completion-response.ts';
import type { Route } from '../http/router.ts';
import { type Json, jsonSchema } from '../openapi/schema-output.ts';
import { ADMIN_BASE, type AdminOperation, operation } from './admin-operation.ts';
import { KEY_OPERATIONS } from './key-operations.ts';
import { PLAN_OPERATIONS, TENANT_OPERATIONS } from './tenant-operations.ts';
import { USAGE_OPERATIONS } from './usage-operations.ts';

const DATA_OPERATIONS: readonly AdminOperation[] = [
  ...PLAN_OPERATIONS,
  ...TENANT_OPERATIONS,
  ...KEY_OPERATIONS,
  ...USAGE_OPERATIONS,
];

const ADMIN_OPERATIONS: readonly AdminOperation[] = [
  ...DATA_OPERATIONS,
  operation({
    method: 'GET',
    path: '/openapi.json',
    summary: 'Show this document',
    status: 200,
    response: z.record(z.string(), z.unknown()),
    run: async () => adminOpenApiDocument(DATA_OPERATIONS),
  }),
];

/** All routes under /admin/v1. Each of them requires an admin key. */
export const ADMIN_ROUTES: readonly Route[] = ADMIN_OPERATIONS.map(({ method, path, handle }) => ({
  method,
  path: ADMIN_BASE + path.replace('{id}', ':rest'),
  handler: handle,
}));

/** Returns the OpenAPI 3.1 document of the admin API. */
function adminOpenApiDocument(operations: readonly AdminOperation[]): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const path = ADMIN_BASE + operation.path;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Continuo admin API', version: '1' },
    components: { securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } } },
    security: [{ adminKey: [] }],
    paths,
  };
}

function describe(operation: AdminOperation): Json {
  const { summary, status, body, response } = operation;
  return {
    summary,
    parameters: parametersOf(operation),
    ...(body && { requestBody: { required: true, content: json(jsonSchema(body, 'input')) } }),
    responses: {
      [status]: { description: summary, content: json(jsonSchema(response, 'output')) },
      default: { description: 'Error', content: json(jsonSchema(errorResponseBody, 'output')) },
    },
  };
}

const json = (schema: Json) => ({ 'application/json': { schema } });

function parametersOf({ path, query }: AdminOperation): unknown[] {
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
    : [];
  const { properties = {} } = (query ? jsonSchema(query, 'input') : {}) as {
    properties?: Record<string, Json>;
  };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
  return [...inPath, ...inQuery];
}
