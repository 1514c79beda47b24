import * as z from 'zod';
import { list } from './json-fields.ts';

/** The public fields that constrain the text to a grammar or a schema; at most one of them may be given. */

const jsonSchema = z.union([z.string(), z.looseObject({})]);
const choices = list(z.string().min(1), { min: 1, max: 4_096 });

/** '' is llama.cpp's own default: clients that send all of its settings send it, too. */
const grammar = z.union([
  z.string(),
  z.object({ type: z.enum(['regex', 'json_schema', 'llguidance', 'lark', 'gbnf']), value: z.unknown() }),
]);

const responseFormat = z.object({
  type: z.enum(['text', 'json_object', 'json_schema', 'grammar']),
  schema: jsonSchema.nullish(),
  json_schema: z
    .object({ name: z.string().nullish(), schema: jsonSchema.nullish(), strict: z.boolean().nullish() })
    .nullish(),
  grammar: z.string().min(1).nullish(),
});

const structuredOutputs = z.object({
  json: jsonSchema.nullish(),
  regex: z.string().min(1).nullish(),
  choice: choices.nullish(),
  grammar: z.string().min(1).nullish(),
  json_object: z.boolean().nullish(),
});

const tool = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string().min(1).max(64),
    description: z.string().nullish(),
    parameters: z.looseObject({}).nullish(),
    strict: z.boolean().nullish(),
  }),
});

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) }),
]);

export const constraintFields = {
  grammar: grammar.nullish(),
  json_schema: jsonSchema.nullish(),
  response_format: responseFormat.nullish(),
  guided_json: jsonSchema.nullish(),
  guided_regex: z.string().min(1).nullish(),
  guided_choice: choices.nullish(),
  guided_grammar: z.string().min(1).nullish(),
  structured_outputs: structuredOutputs.nullish(),
  regex: z.string().min(1).nullish(),
  ebnf: z.string().min(1).nullish(),
  tools: list(tool, { max: 128 }).nullish(),
  tool_choice: toolChoice.nullish(),
} as const;
