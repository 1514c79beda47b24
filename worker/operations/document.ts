import { errorResponseBody } from '@continuo/shared/completion-response.ts';
import { documented } from '@continuo/shared/documented.ts';
import { ApiError, type ErrorCode } from '@continuo/shared/errors.ts';
import { DOCUMENTED_AS } from '@continuo/shared/json-fields.ts';
import { dialectName } from '@continuo/shared/tenant.ts';
import * as z from 'zod';
import { DIALECT_HEADER } from '../dialects/dialect.ts';
import {
  CHALLENGE_HEADERS,
  COMMON_HEADERS,
  type HeaderDescriptions,
  IDEMPOTENCY_HEADER,
  LIMIT_HEADERS,
  REPLAY_HEADERS,
  REQUEST_ID_HEADER,
  RESUMABLE_HEADER,
  RETRY_HEADERS,
} from '../http/headers.ts';
import type { Operation } from './operation.ts';
import { ANY, AUTHENTICATED, BODY, CALLER } from './operation-errors.ts';

const nameOf = (schema: z.ZodType): string | undefined => documented.get(schema)?.name;

const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

/** Refers to a schema that has a name, and shows every other one in its place. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const name = nameOf(schema);
  return name === undefined ? jsonSchema(schema, io) : reference(name);
}

const headersOf = (described: HeaderDescriptions): Json =>
  Object.fromEntries(
    Object.entries(described).map(([name, description]) => [
      name,
      { description, schema: { type: 'string' } },
    ]),
  );

/** Returns whether errors of this status have retry headers. */
const hasRetryHeaders = (status: number): boolean => status >= 500 || [408, 409, 429].includes(status);

/**
 * Describes every error status with its codes and one example.
 * @param headers those of all responses of the operation
 */
function errorResponses(codes: readonly ErrorCode[], headers: HeaderDescriptions): Json {
  const byStatus = Map.groupBy(
    [...new Set(codes)].map((code) => new ApiError(code, 'Says what is wrong and what to do.')),
    ({ status }) => status,
  );
  return Object.fromEntries(
    [...byStatus].map(([status, errors]) => [
      String(status),
      {
        description: [...new Set(errors.map((error) => error.envelope().error.code))].join(', '),
        headers: headersOf({
          ...headers,
          ...(hasRetryHeaders(status) ? RETRY_HEADERS : {}),
          ...(status === 401 ? CHALLENGE_HEADERS : {}),
        }),
        content: { 'application/json': { schema: reference('Error'), example: errors[0]!.envelope() } },
      },
    ]),
  );
}

/** Returns the errors of the caller, and of an unknown id in the path. Models have an error of their own. */
const generalErrors = (operation: Operation): readonly ErrorCode[] => [
  ...(isOpen(operation) ? ANY : isOfAdmin(operation) ? AUTHENTICATED : CALLER),
  ...(operation.path.includes('{id}') ? (['not_found'] as const) : []),
];

function responsesOf(operation: Operation): Json {
  const { response, events, isFile, status = 200, body, form, errors = [], isLimited } = operation;
  const headers = { ...COMMON_HEADERS, ...(isLimited && LIMIT_HEADERS) };
  const content: Json = {};
  if (response)
    content['application/json'] = {
      schema: schemaOf(response, 'output'),
      example: documented.get(response)?.example,
    };
  if (events) content['text/event-stream'] = { schema: schemaOf(events, 'output') };
  if (isFile) content['application/jsonl'] = { schema: { type: 'string' } };
  const onSuccess = {
    ...headers,
    ...(operation.isRepeatable && REPLAY_HEADERS),
    ...operation.responseHeaders,
  };
  const codes = [...generalErrors(operation), ...(body || form ? BODY : []), ...errors];
  return {
    [status]: { description: 'Success', headers: headersOf(onSuccess), content },
    ...errorResponses(codes, headers),
  };
}

const isOpen = ({ scope }: Operation): boolean => scope === undefined;

const isOfAdmin = ({ scope }: Operation): boolean => scope === 'admin';

/** Header parameters of every operation. */
const TRACING: HeaderDescriptions = {
  [REQUEST_ID_HEADER]: 'Your own id of the request: at most 128 letters, digits and characters of `_.:-`.',
  traceparent: 'W3C trace context. The endpoint sends it to the model server.',
};

const REPEATABLE: HeaderDescriptions = {
  [IDEMPOTENCY_HEADER]:
    'Runs a plain request once: repeated with the same key within one hour, it gets the first response.',
};

const RESUMABLE: HeaderDescriptions = {
  [RESUMABLE_HEADER]:
    '`true` makes a stream resumable after a lost connection, until one minute after its end.',
};

function queryParameters(query: z.ZodType): Json[] {
  const { properties } = jsonSchema(query, 'input') as { properties: Record<string, Json> };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    description,
    schema,
  }));
}

function parametersOf(operation: Operation): Json[] {
  const { path, query, isRepeatable, isResumable, requestHeaders } = operation;
  const text = { type: 'string' };
  const headers = {
    ...(isRepeatable && REPEATABLE),
    ...(isResumable && RESUMABLE),
    ...requestHeaders,
    ...TRACING,
  };
  const parameters: Json[] = [
    ...(query ? queryParameters(query) : []),
    ...Object.entries(headers).map(([name, description]) => ({
      name,
      in: 'header',
      description,
      schema: text,
    })),
  ];
  if (path.includes('{id')) {
    const noun = /^\/v1\/(file|upload|batch|model|key|request|completion)/.exec(path)?.[1] ?? 'record';
    const description = `Id of the ${noun}.`;
    parameters.push({ name: 'id', in: 'path', required: true, description, schema: text });
  }
  if (!isOpen(operation) && !isOfAdmin(operation)) {
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

function requestBody(type: string, schema: z.ZodType): Json {
  const { example, examples } = documented.get(schema) ?? {};
  const named = Object.entries(examples ?? {}).map(([name, value]) => [name, { value }]);
  const shown = named.length > 0 ? { examples: Object.fromEntries(named) } : { example };
  return { required: true, content: { [type]: { schema: schemaOf(schema, 'input'), ...shown } } };
}

function operationObject(operation: Operation, tag: string): Json {
  const { id, summary, body, form } = operation;
  return {
    operationId: id,
    summary,
    tags: [tag],
    security: isOpen(operation) ? [] : [{ bearer: [] }, { header: [] }],
    parameters: parametersOf(operation),
    ...(body && { requestBody: requestBody('application/json', body) }),
    ...(form && { requestBody: requestBody('multipart/form-data', form) }),
    responses: responsesOf(operation),
  };
}

function componentSchemas(operations: readonly Operation[]): Json {
  const schemas = operations.flatMap(({ body, form, response, events }) =>
    [body, form, response, events].filter((schema) => schema !== undefined),
  );
  const json = [...new Set(schemas)].flatMap((schema) => {
    const name = nameOf(schema);
    return name === undefined ? [] : [[name, jsonSchema(schema, 'input')]];
  });
  return { ...Object.fromEntries(json), Error: jsonSchema(errorResponseBody, 'input') };
}

/** Returns the paths of a document, each with its operations. */
function pathsOf(
  operations: readonly Operation[],
  describe: (operation: Operation) => Json,
): Record<string, Json> {
  const byPath = Map.groupBy(operations, ({ path }) => path.replace('{id+}', '{id}'));
  const methods = (group: readonly Operation[]) =>
    Object.fromEntries(group.map((operation) => [operation.method.toLowerCase(), describe(operation)]));
  return Object.fromEntries([...byPath].map(([path, group]) => [path, methods(group)]));
}

export interface OperationGroup {
  readonly tag: string;
  readonly description?: string;
  readonly operations: readonly Operation[];
}

/** Returns an OpenAPI 3.1 document of these operations. */
export function openApiDocument(
  groups: readonly OperationGroup[],
  about: { readonly title: string; readonly description: string },
): Json {
  const operations = groups.flatMap((group) => group.operations);
  const tagOf = (operation: Operation) => groups.find((group) => group.operations.includes(operation))!.tag;
  return {
    openapi: '3.1.0',
    info: {
      ...about,
      version: '1',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: groups.map(({ tag: name, description }) => ({ name, description })),
    paths: pathsOf(operations, (operation) => operationObject(operation, tagOf(operation))),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        header: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      schemas: componentSchemas(operations),
    },
  };
}

type Json = Record<string, unknown>;

/** Converts a zod schema to JSON Schema: of what callers send (`input`), or of what they get (`output`). */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
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
