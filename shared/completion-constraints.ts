import * as z from 'zod';
import { always, characters, flag, list, optional } from './json-fields.ts';

/** The public fields that constrain the text to a grammar or a schema. A request has at most one. */

const jsonSchema = z.union([z.string(), z.looseObject({}), z.boolean()]);
const choices = list(z.string().min(1), { min: 1, max: 4_096 });
/** '' is llama.cpp's default for no grammar. Clients that send all settings of a server also send it. */
const text = (description: string) => optional(z.string(), description);

const grammar = z.union([
  z.string(),
  z.object({
    type: z
      .enum(['regex', 'json_schema', 'llguidance', 'lark', 'gbnf'])
      .describe('Language of the constraint.'),
    value: z.unknown().describe('The constraint in that language.'),
  }),
]);

const responseFormat = z.object({
  type: z
    .enum(['text', 'json_object', 'json_schema', 'grammar'])
    .describe('Kind of the text. text means no constraint.'),
  schema: optional(jsonSchema, 'JSON Schema for the types json_object and json_schema.'),
  json_schema: optional(
    z.object({
      name: optional(z.string(), 'Accepted without effect.'),
      schema: optional(jsonSchema, 'The JSON Schema.'),
      strict: flag(
        'With x-dialect: openai, true rejects a schema whose objects have undeclared or optional properties.',
      ),
    }),
    'JSON Schema in the form of the OpenAI API.',
  ),
  grammar: optional(z.string().min(1), 'GBNF grammar for the type grammar.'),
});

const structuredOutputs = z.looseObject({
  json: optional(jsonSchema, 'The text is JSON that matches this JSON Schema.'),
  regex: text('The text matches this regular expression.'),
  choice: optional(choices, 'The text is one of these.'),
  grammar: text('The text matches this GBNF grammar.'),
  json_object: flag('The text is a JSON object.'),
});

const tool = z.object({
  type: always('function'),
  function: z
    .object({
      name: characters(64, z.string().min(1)).describe('Name of the function.'),
      description: optional(z.string(), 'Accepted without effect.'),
      parameters: optional(z.looseObject({}), "JSON Schema of the function's arguments."),
      strict: flag('Must be true: the arguments match the schema.'),
    })
    .describe('The function that the model calls.'),
});

const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.object({
    type: always('function'),
    function: z
      .object({ name: z.string().describe('Name of the function.') })
      .describe('The function that the model must call.'),
  }),
]);

export const constraintFields = {
  grammar: optional(
    grammar,
    'The text matches this GBNF grammar, or a grammar of another type. An empty string means none, as in all fields of constraints.',
  ),
  json_schema: optional(jsonSchema, 'The text is JSON that matches this JSON Schema.'),
  response_format: optional(responseFormat, 'Constrains the text to JSON, to a JSON Schema or to a grammar.'),
  guided_json: optional(jsonSchema, 'Alias of json_schema.'),
  guided_regex: text('Alias of regex.'),
  guided_choice: optional(choices, 'The text is one of these.'),
  guided_grammar: text('Alias of grammar, as GBNF.'),
  structured_outputs: optional(
    structuredOutputs,
    'One constraint: json, regex, choice, grammar or json_object. An empty object means none.',
  ),
  regex: text('The text matches this regular expression.'),
  ebnf: text('Alias of grammar, as GBNF.'),
  open_objects: flag(
    'Objects of a JSON Schema may have properties that it does not declare, unless additionalProperties forbids it.',
  ),
  any_key_order: flag('The properties of an object of a JSON Schema may come in any order.'),
  tools: optional(
    list(tool, { max: 128 }),
    'Functions. Only a strict function that tool_choice forces is supported; the text is its arguments.',
  ),
  tool_choice: optional(toolChoice, 'The function that the model must call.'),
} as const;
