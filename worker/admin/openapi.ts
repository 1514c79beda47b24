import * as z from 'zod';
import { errorResponse } from '../../shared/completion-response.ts';
import { ADMIN_BASE, type Operation } from './operation.ts';

type Schema = Readonly<Record<string, unknown>>;

const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): Schema => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
};

const json = (schema: Schema) => ({ 'application/json': { schema } });

function parametersOf({ path, query }: Operation): unknown[] {
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
    : [];
  const { properties = {} } = (query ? schemaOf(query, 'input') : {}) as {
    properties?: Record<string, Schema>;
  };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
  return [...inPath, ...inQuery];
}

function describe(operation: Operation): unknown {
  const { summary, status, body, response } = operation;
  return {
    summary,
    parameters: parametersOf(operation),
    ...(body && { requestBody: { required: true, content: json(schemaOf(body, 'input')) } }),
    responses: {
      [status]: { description: summary, content: json(schemaOf(response, 'output')) },
      default: { description: 'Error', content: json(schemaOf(errorResponse, 'output')) },
    },
  };
}

/** The admin API's part of the OpenAPI 3.1 description: `paths` for these operations. */
function openApiPaths(operations: readonly Operation[]): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const path = ADMIN_BASE + operation.path;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) };
  }
  return paths;
}

export function openApiDocument(operations: readonly Operation[]): Schema {
  return {
    openapi: '3.1.0',
    info: { title: 'Continuo admin API', version: '1' },
    components: { securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } } },
    security: [{ adminKey: [] }],
    paths: openApiPaths(operations),
  };
}
