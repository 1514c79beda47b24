import type { Parameters } from '../api/request-field.ts';

/** The constraints that have an editor, by their request field. */
export type ConstraintField = 'json_schema' | 'grammar' | 'regex';

export const CONSTRAINT_FIELDS: readonly (readonly [ConstraintField, string])[] = [
  ['json_schema', 'JSON Schema'],
  ['grammar', 'Grammar'],
  ['regex', 'Regular expression'],
];

export const CONSTRAINT_EXAMPLES: Readonly<Record<ConstraintField, string>> = {
  json_schema: JSON.stringify(
    {
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 12 },
        age: { type: 'integer', minimum: 1, maximum: 99 },
      },
      required: ['name', 'age'],
      additionalProperties: false,
    },
    null,
    2,
  ),
  grammar: 'root   ::= answer "."\nanswer ::= " yes" | " no" | " perhaps"\n',
  regex: ' (one|two|three) (kings|wolves|sisters)\\.',
};

/** Returns a constraint as the editor shows it. */
export function sourceOf(field: ConstraintField, parameters: Parameters): string | null {
  const value = parameters[field];
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** Returns the value of the request field; text if JSON.parse would round numbers. @throws SyntaxError */
export function constraintValue(field: ConstraintField, source: string): unknown {
  if (field !== 'json_schema') return source;
  const schema: unknown = JSON.parse(source);
  return /[\d.]{16}/.test(source) ? source : schema;
}
