import { completionRequest } from '@continuo/shared/completion.ts';
import { DOCUMENTED_AS } from '@continuo/shared/json-fields.ts';
import { dialectName, type Tenant } from '@continuo/shared/tenant.ts';
import { chooseDialect, DIALECT_HEADER } from '@continuo/worker/dialects/dialect.ts';
import type { Plugin } from 'vite';
import * as z from 'zod';
import type { RequestField } from '../api/request-field.ts';

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
}

/** Returns a schema, or its members if it is a union of several or has several types. */
function membersOf(schema: JsonSchema): readonly JsonSchema[] {
  const { anyOf, type } = schema;
  if (anyOf) return anyOf.flatMap(membersOf);
  return Array.isArray(type) ? type.map((name: string) => ({ ...schema, type: name })) : [schema];
}

/** The kind that can express most: a list before its item, a number before a word that stands for one. */
const KINDS: readonly (readonly [RequestField['kind'], (schema: JsonSchema) => boolean])[] = [
  ['texts', ({ type, items }) => type === 'array' && items?.type === 'string'],
  ['ids', ({ type, items }) => type === 'array' && items?.type === 'integer'],
  ['number', ({ type }) => type === 'number'],
  ['integer', ({ type }) => type === 'integer'],
  ['choice', ({ enum: values }) => values !== undefined],
  ['text', ({ type }) => type === 'string'],
  ['flag', ({ type }) => type === 'boolean'],
];

function fieldOf(schema: JsonSchema): RequestField {
  const members = membersOf(schema);
  const kinds = KINDS.flatMap(([kind, matches]) => {
    const member = members.find(matches);
    return member ? [{ kind, member }] : [];
  });
  const { kind, member } = kinds[0] ?? { kind: 'json', member: schema };
  const { minimum, exclusiveMinimum, maximum, enum: values } = member;
  const least = minimum ?? exclusiveMinimum;
  return {
    description: schema.description ?? '',
    kind,
    ...(least !== undefined && { minimum: least }),
    ...(maximum !== undefined && { maximum }),
    ...(values && { values }),
  };
}

const documented = (schema: z.ZodType) =>
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }): void => {
      const documentedAs: unknown = Reflect.get(jsonSchema, DOCUMENTED_AS);
      Reflect.deleteProperty(jsonSchema, DOCUMENTED_AS);
      if (documentedAs instanceof z.ZodType) Object.assign(jsonSchema, documented(documentedAs));
    },
  });

/** Returns every field of the request schema by name. */
export function requestFields(): Readonly<Record<string, RequestField>> {
  const { properties = {} } = documented(completionRequest);
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, fieldOf(schema as JsonSchema)]),
  );
}

const ID = 'virtual:request-fields';

/** Returns the maximum of `logprobs` by dialect; '' = a request that names none. */
function maxLogprobs(): Readonly<Record<string, number>> {
  const tenant = { dialect: 'openai' } as Tenant;
  const chosen = ['', ...dialectName.options].map((name) => {
    const request = new Request('http://host', name === '' ? {} : { headers: { [DIALECT_HEADER]: name } });
    return [name, chooseDialect(request, tenant).maxLogprobs] as const;
  });
  return Object.fromEntries(chosen);
}

const source = (): string =>
  `export const REQUEST_FIELDS = ${JSON.stringify(requestFields())};
   export const DIALECT_NAMES = ${JSON.stringify(dialectName.options)};
   export const MAX_LOGPROBS = ${JSON.stringify(maxLogprobs())};`;

/** Serves the fields and the dialects as a module, so that the page loads no zod. */
export const requestFieldsModule = (): Plugin => ({
  name: 'request-fields',
  resolveId: (id) => (id === ID ? `\0${ID}` : null),
  load: (id) => (id === `\0${ID}` ? source() : null),
});
