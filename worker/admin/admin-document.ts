import { errorResponseBody } from '@continuo/shared/completion-response.ts';
import { documented } from '@continuo/shared/documented.ts';
import type { ErrorCode } from '@continuo/shared/errors.ts';
import {
  errorResponses,
  type Json,
  jsonSchema,
  pathsOf,
  queryParameters,
  unknownId,
} from '../operations/document.ts';
import type { Operation } from '../operations/operation.ts';
import { AUTHENTICATED, BODY as BODY_ERRORS } from '../operations/operation-errors.ts';
import { ADMIN_BASE } from './admin-operation.ts';

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

export const adminOpenApiDocument = (operations: readonly Operation[]): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'Continuo admin API',
    version: '1',
    description: 'Plans, tenants, API keys and usage. Every request needs an admin key.',
  },
  servers: [{ url: '/' }],
  tags: [...new Set(operations.map(tagOf))].map((name) => ({ name })),
  paths: pathsOf(operations, describe),
  components: {
    securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } },
    schemas: { Error: jsonSchema(errorResponseBody, 'output') },
  },
  security: [{ adminKey: [] }],
});

/** `/admin/v1/keys/{id}` → `Keys`. */
function tagOf({ path }: Operation): string {
  const name = path.slice(ADMIN_BASE.length).split('/')[1]!;
  return name[0]!.toUpperCase() + name.slice(1);
}

function describe(operation: Operation): Json {
  const { id, summary, status = 200, path, body, query, response } = operation;
  const errors = [...AUTHENTICATED, ...unknownId(operation), ...(body ? BODY : query ? QUERY : [])];
  const description = 'Id of the record.';
  const inPath = { name: 'id', in: 'path', required: true, description, schema: { type: 'string' } };
  return {
    operationId: id,
    summary,
    tags: [tagOf(operation)],
    parameters: [...(path.includes('{id}') ? [inPath] : []), ...(query ? queryParameters(query) : [])],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: jsonSchema(body, 'input'),
            example: documented.get(body)?.example,
          },
        },
      },
    }),
    responses: {
      [status]: {
        description: 'Success',
        content: { 'application/json': { schema: response && jsonSchema(response, 'output') } },
      },
      ...errorResponses(errors),
    },
  };
}
