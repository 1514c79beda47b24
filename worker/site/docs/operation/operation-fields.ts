import type { Schema } from '../documents.ts';

/** One field of a body or a response, as the page lists it. */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly limits: readonly string[];
  readonly required: boolean;
  readonly description: string;
  /** As JSON; null if there is none, or if it is an object. */
  readonly fallback: string | null;
  /** Other names of the field, with what is different under them. */
  readonly aliases: readonly { readonly name: string; readonly note: string }[];
  /** Fields of the objects inside. */
  readonly fields: readonly (readonly Field[])[];
}

/** Forms of a value. That a field may be null, which means absent, is not repeated for each. */
const formsOf = (schema: Schema): readonly Schema[] =>
  schema.anyOf?.flatMap(formsOf) ?? (schema.type === 'null' ? [] : [schema]);

/** Returns the object schemas inside a value: its own, those of its elements and those of its forms. */
function objectsIn(schema: Schema): Schema[] {
  const { items, additionalProperties, properties, anyOf = [] } = schema;
  if (properties !== undefined) return [schema];
  const map = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  return [...(items ? [items] : []), ...map, ...anyOf].flatMap(objectsIn);
}

function typeOf(schema: Schema): string {
  const types = formsOf(schema).flatMap(({ type, items, enum: values, const: only }) => {
    if (only !== undefined || values) return (values ?? [only]).map((value) => JSON.stringify(value));
    if (type === 'array' && items) return [`array of ${typeOf(items).replace(/^.* \| .*$/, '($&)')}`];
    return [type ?? 'any'].flat().filter((name) => name !== 'null');
  });
  return [...new Set(types)].join(' | ');
}

const LIMITS = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' elements'],
] as const;

/** Bounds that only say which integers fit. */
const UNBOUNDED: readonly unknown[] = [2_147_483_647, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];

function limitsOf(schema: Schema): string[] {
  const limits = formsOf(schema).flatMap((form) =>
    LIMITS.flatMap(([least, most, unit]) => {
      const bounds = [form[least], form[most]];
      const [from, to] = bounds.map((bound) => (UNBOUNDED.includes(bound) ? undefined : bound));
      const above = unit === '' ? form.exclusiveMinimum : undefined;
      const isNeeded = unit === '' ? from !== undefined : Boolean(from);
      const parts = [
        above === undefined ? '' : `> ${above}`,
        isNeeded ? `≥ ${from}` : '',
        to === undefined ? '' : `≤ ${to}`,
      ];
      const text = parts.filter((part) => part !== '').join(', ');
      return text === '' ? [] : [text.replace(/^≥ (\S+), ≤ /, '$1 to ') + unit];
    }),
  );
  return [...new Set(limits)];
}

/** Lists the fields of an object schema. An alias is not a field of its own. */
export function fieldsOf({ properties = {}, required = [] }: Schema): Field[] {
  const entries = Object.entries(properties).map(([name, schema]) => {
    const [, alias, note = ''] = /^Alias of (\w+)[.,]?\s*(.*?)\.?$/.exec(schema.description ?? '') ?? [];
    return { name, schema, alias, note };
  });
  return entries
    .filter(({ alias }) => alias === undefined)
    .map(({ name, schema }) => ({
      name,
      type: typeOf(schema),
      limits: limitsOf(schema),
      required: required.includes(name),
      description: schema.description ?? '',
      fallback: ['undefined', 'object'].includes(typeof schema.default)
        ? null
        : JSON.stringify(schema.default),
      aliases: entries.filter(({ alias }) => alias === name),
      fields: objectsIn(schema).map(fieldsOf),
    }));
}

/** Returns the lists of fields in a body or response; several if it has several forms. */
export const fieldListsOf = (schema: Schema): Field[][] => objectsIn(schema).map(fieldsOf);
