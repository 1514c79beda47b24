import { errorResponse } from '../../shared/completion-response.ts';
import { type Json, jsonSchema } from '../openapi/json-schema.ts';
import { ADMIN_BASE, type Operation } from './operation.ts';

const json = (schema: Json) => ({ 'application/json': { schema } });

function parametersOf({ path, query }: Operation): unknown[] {
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
    : [];
  const { properties = {} } = (query ? jsonSchema(query, 'input') : {}) as {
    properties?: Record<string, Json>;
  };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
  return [...inPath, ...inQuery];
}

function describe(operation: Operation): unknown {
  const { summary, status, body, response } = operation;
  return {
    summary,
    parameters: parametersOf(operation),
    ...(body && { requestBody: { required: true, content: json(jsonSchema(body, 'input')) } }),
    responses: {
      [status]: { description: summary, content: json(jsonSchema(response, 'output')) },
      default: { description: 'Error', content: json(jsonSchema(errorResponse, 'output')) },
    },
  };
}

function openApiPaths(operations: readonly Operation[]): Record<string, Json> {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const path = ADMIN_BASE + operation.path;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) };
  }
  return paths;
}

/** The admin API's own OpenAPI 3.1 document, of these operations. */
export function openApiDocument(operations: readonly Operation[]): Json {
  return {
    openapi: '3.1.0',
    info: { title: 'Continuo admin API', version: '1' },
    components: { securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } } },
    security: [{ adminKey: [] }],
    paths: openApiPaths(operations),
  };
}
