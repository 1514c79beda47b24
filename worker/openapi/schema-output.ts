import { DOCUMENTED_AS } from '@continuo/shared/json-fields.ts';
import * as z from 'zod';

export type Json = Record<string, unknown>;

/** Converts a zod schema to JSON Schema: of what callers send (`input`), or of what they get (`output`). */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
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
