import { type Connection, requestJson } from '../api/client.ts';
import { type ApiName, toOperation } from './routes.ts';

/** The part of a JSON Schema that the search reads. */
export interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly type?: string | readonly string[];
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly name: string; readonly description?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: unknown }>>;
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
