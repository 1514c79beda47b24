import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

/** An independent validator: ajv, for the draft that the schema names. */
export function ajvValidator(schema: unknown): (value: unknown) => boolean {
  const text = JSON.stringify(schema);
  // With the precision, 1.17 is a multiple of 0.01.
  const options = { strict: false, allErrors: false, multipleOfPrecision: 9 };
  const ajv = text.includes('draft-07') ? new Ajv(options) : new Ajv2020(options);
  formats.default(ajv);
  // Formats of Pydantic that ajv does not know.
  ajv.addFormat('uuid4', /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i);
  for (const hint of ['path', 'file-path', 'directory-path']) ajv.addFormat(hint, true);
  return ajv.compile(schema as object) as (value: unknown) => boolean;
}
