import type { SchemaWording, System } from 'swagger-ui-dist/swagger-ui-es-bundle.js';

/** The part of JSON Schema that the documents use. */
interface JsonSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
}

/** Returns the object schemas inside a field: its own, those of its elements and those of its forms. */
function objectsIn(schema: JsonSchema): JsonSchema[] {
  if (schema.properties !== undefined) return [schema];
  const { items, additionalProperties, anyOf = [] } = schema;
  const map = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  return [...(items ? [items] : []), ...map, ...anyOf].flatMap(objectsIn);
}

/** Returns the limits as texts, without those that only say what fits into a number. */
const limitsOf = (schema: JsonSchema, { stringifyConstraints }: SchemaWording): string[] =>
  stringifyConstraints(schema)
    .map(({ value }) => value.replace(/^\[(-?\d+), 2147483647\]$/, '≥ $1'))
    .filter((value) => !value.includes(String(Number.MAX_SAFE_INTEGER)));

const valuesOf = (schema: JsonSchema): readonly unknown[] =>
  schema.enum ?? (schema.const === undefined ? [] : [schema.const]);

/**
 * Lists the fields of a schema with their descriptions. Swagger UI's own component shows a description only after a click.
 * Types and limits are worded by Swagger UI.
 */
export function schemaFields(system: System) {
  const { createElement: h } = system.React;

  const fieldOf = (name: string, schema: JsonSchema, required: boolean, wording: SchemaWording): unknown => {
    const values = valuesOf(schema);
    const type =
      values.length > 0
        ? values.map((value) => JSON.stringify(value)).join(' | ')
        : wording.getType(schema).replace(/^\((.*)\)$/, '$1');
    const fallback = typeof schema.default === 'object' ? undefined : schema.default;
    return h(
      'li',
      { key: name },
      h(
        'p',
        { className: 'schema-head' },
        h('code', null, name),
        h('span', { className: 'schema-type' }, type),
        ...limitsOf(schema, wording).map((limit) =>
          h('span', { className: 'schema-limit', key: limit }, limit),
        ),
        required ? h('span', { className: 'schema-required' }, 'required') : null,
      ),
      schema.description ? h('p', null, schema.description) : null,
      fallback === undefined ? null : h('p', { className: 'quiet' }, `Default: ${JSON.stringify(fallback)}`),
      ...objectsIn(schema).map((one, index) =>
        h('details', { key: index }, h('summary', null, `Fields of ${name}`), listOf(one, wording)),
      ),
    );
  };

  const listOf = ({ properties = {}, required = [] }: JsonSchema, wording: SchemaWording): unknown =>
    h(
      'ul',
      { className: 'schema' },
      ...Object.entries(properties).map(([name, field]) =>
        fieldOf(name, field, required.includes(name), wording),
      ),
    );

  return ({ schema }: { readonly schema: JsonSchema }) => {
    const wording = system.getSystem().fn.jsonSchema202012.useFn();
    return h('div', { className: 'schemas' }, ...objectsIn(schema).map((one) => listOf(one, wording)));
  };
}
