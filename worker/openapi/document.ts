import * as answers from '../../shared/completion-response.ts';
import { ApiError } from '../../shared/errors.ts';
import { dialectName } from '../../shared/tenant.ts';
import { DIALECT_HEADER } from '../dialects/dialect.ts';
import { CHALLENGED, type Described, EVERY_ANSWER, LIMITS, RETRYING } from '../http/headers.ts';
import { REQUEST_ID_HEADER } from '../http/responses.ts';
import { FIELD_DESCRIPTIONS } from './fields.ts';
import { type Json, jsonSchema } from './json-schema.ts';
import { OPERATIONS, type Operation } from './operations.ts';

interface Documented {
  readonly method: string;
  /** The router's pattern. */
  readonly path: string;
}

function describeFields(json: Json): Json {
  const described = Object.entries(json.properties as Record<string, Json>).map(([name, field]) => [
    name,
    { ...field, description: FIELD_DESCRIPTIONS[name as keyof typeof FIELD_DESCRIPTIONS] },
  ]);
  return { ...json, properties: Object.fromEntries(described) };
}

const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const headersOf = (described: Described): Json =>
  Object.fromEntries(
    Object.entries(described).map(([name, description]) => [
      name,
      { description, schema: { type: 'string' } },
    ]),
  );

/** Of all answers of an operation. */
const common = ({ limited = false }: Operation): Described => ({
  ...EVERY_ANSWER,
  ...(limited ? LIMITS : {}),
});

/** Asking again may help, or an answer may come to say that it does not. */
const tellsOfRetries = (status: number): boolean => status >= 500 || [408, 409, 429].includes(status);

/** Every status an error may have, with the codes that come under it. */
function errorResponses(operation: Operation): Json {
  const byStatus = Map.groupBy(
    operation.errors.map((code) => new ApiError(code, '')),
    ({ status }) => status,
  );
  return Object.fromEntries(
    [...byStatus].map(([status, ones]) => [
      String(status),
      {
        description: [...new Set(ones.map((error) => error.envelope().error.code))].join(', '),
        headers: headersOf({
          ...common(operation),
          ...(tellsOfRetries(status) ? RETRYING : {}),
          ...(status === 401 ? CHALLENGED : {}),
        }),
        content: { 'application/json': { schema: reference('Error') } },
      },
    ]),
  );
}

function successResponse(operation: Operation): Json {
  const { answer, events, answerHeaders } = operation;
  const content: Json = {};
  if (answer) content['application/json'] = { schema: reference(answer.name), example: answer.example };
  if (events) content['text/event-stream'] = { schema: reference(events.name) };
  return { description: 'Success', headers: headersOf({ ...common(operation), ...answerHeaders }), content };
}

/** What any request may send along. */
const TRACING: Described = {
  [REQUEST_ID_HEADER]:
    'An id of your own for the request: up to 128 letters, digits and characters of `_.:-`.',
  traceparent: 'W3C trace context, which goes on to the model server.',
};

function parametersOf(path: string, { query = {}, headers = {}, secured }: Operation): Json[] {
  const text = { type: 'string' };
  const optional = (where: string, described: Described): Json[] =>
    Object.entries(described).map(([name, description]) => ({ name, in: where, description, schema: text }));
  const parameters = [...optional('query', query), ...optional('header', { ...headers, ...TRACING })];
  if (path.includes(':rest')) parameters.push({ name: 'id', in: 'path', required: true, schema: text });
  if (secured) {
    parameters.push({
      name: DIALECT_HEADER,
      in: 'header',
      description: "Whose defaults and habits to follow; without it the account's.",
      schema: { type: 'string', enum: dialectName.options },
    });
  }
  return parameters;
}

function operationObject(path: string, operation: Operation): Json {
  const { body, id, summary, secured } = operation;
  const examples = Object.entries(body?.examples ?? {}).map(([name, value]) => [name, { value }]);
  return {
    operationId: id,
    summary,
    security: secured ? [{ bearer: [] }] : [],
    parameters: parametersOf(path, operation),
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: reference(body.name), examples: Object.fromEntries(examples) },
        },
      },
    }),
    responses: { '200': successResponse(operation), ...errorResponses(operation) },
  };
}

function componentSchemas(operations: readonly Operation[]): Json {
  const named = operations.flatMap(({ body, answer, events }) =>
    [body, answer, events].filter((schema) => schema !== undefined),
  );
  const schemas = new Map(named.map(({ name, schema }) => [name, schema]));
  const json = [...schemas].map(([name, schema]) => [name, jsonSchema(schema, 'input')] as const);
  const described = json.map(([name, schema]) => [
    name,
    name === 'CompletionRequest' ? describeFields(schema) : schema,
  ]);
  return { ...Object.fromEntries(described), Error: jsonSchema(answers.errorResponse, 'input') };
}

/** The OpenAPI 3.1 document of the routes that have an entry among the operations. */
export function openApiDocument(routes: readonly Documented[]): Json {
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
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: componentSchemas(known.map(({ operation }) => operation)),
    },
  };
}
