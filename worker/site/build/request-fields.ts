import type { Plugin } from 'vite';
import * as z from 'zod';
import { completionRequest } from '../../../shared/completion.ts';
import { DOCUMENTED_AS } from '../../../shared/json-fields.ts';
import type { RequestField } from '../api/request-field.ts';

interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
}

const KINDS: Readonly<Record<string, RequestField['kind']>> = {
  number: 'number',
  integer: 'integer',
  boolean: 'flag',
  string: 'text',
};

/** Returns the one member of `anyOf` besides null; otherwise the schema itself. */
function withoutNull(schema: JsonSchema): JsonSchema {
  const members = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  return members.length === 1 ? { ...members[0], ...describedBy(schema) } : schema;
}

const describedBy = ({ description }: JsonSchema) => (description === undefined ? {} : { description });

function fieldOf(schema: JsonSchema): RequestField {
  const {
    type = '',
    description = '',
    minimum,
    exclusiveMinimum,
    maximum,
    enum: values,
  } = withoutNull(schema);
  const least = minimum ?? exclusiveMinimum;
  return {
    description,
    kind: values ? 'choice' : (KINDS[type] ?? 'json'),
    ...(least !== undefined && { minimum: least }),
    ...(maximum !== undefined && { maximum }),
    ...(values && { values }),
  };
}

/** Returns every field of the request schema by name. */
export function requestFields(): Readonly<Record<string, RequestField>> {
  const { properties = {} } = z.toJSONSchema(completionRequest, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      const documentedAs: unknown = Reflect.get(jsonSchema, DOCUMENTED_AS);
      Reflect.deleteProperty(jsonSchema, DOCUMENTED_AS);
      if (documentedAs instanceof z.ZodType) Object.assign(jsonSchema, z.toJSONSchema(documentedAs));
    },
  });
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, fieldOf(schema as JsonSchema)]),
  );
}

const ID = 'virtual:request-fields';

/** Serves the fields as a module, so that the page loads no zod. */
export const requestFieldsModule = (): Plugin => ({
  name: 'request-fields',
  resolveId: (id) => (id === ID ? `\0${ID}` : null),
  load: (id) =>
    id === `\0${ID}` ? `export const REQUEST_FIELDS = ${JSON.stringify(requestFields())};` : null,
});
