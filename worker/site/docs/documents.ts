import { type Connection, requestJson } from '../api/client.ts';
import { type ApiName, toOperation } from './routes.ts';

type Bounds =
  | 'minimum'
  | 'maximum'
  | 'exclusiveMinimum'
  | 'minLength'
  | 'maxLength'
  | 'minItems'
  | 'maxItems';

/** The part of JSON Schema that the documents use. */
export interface Schema extends Readonly<Partial<Record<Bounds, number>>> {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

export interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

/** What one status means. */
export interface Outcome {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Outcome>>;
}

export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const ADDRESSES: Readonly<Record<ApiName, string>> = {
  api: '/openapi.json',
  admin: '/admin/v1/openapi.json',
};

/** Loads a document. That of the admin API needs an admin key. @throws RequestFailure */
export const loadDocument = (api: ApiName, connection: Connection): Promise<OpenApiDocument> =>
  requestJson<OpenApiDocument>(api === 'admin' ? connection : { key: null, dialect: null }, ADDRESSES[api]);

/** One operation with its place in the document and on the page. */
export interface ListedOperation {
  readonly address: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export const operationsOf = (document: OpenApiDocument, api: ApiName): ListedOperation[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      address: toOperation(api, operation.operationId),
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );

/** Returns the component that a schema refers to, or the schema itself. */
export const resolved = (schema: Schema, schemas: OpenApiDocument['components']['schemas']): Schema =>
  schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1)!] ?? schema);
