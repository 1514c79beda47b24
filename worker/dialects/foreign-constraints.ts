import { unsupportedParameter } from './request-errors.ts';

/** Constraint fields of other servers that have no implementation here, and what to send in their place. */
const FOREIGN_CONSTRAINTS: Readonly<Record<string, string>> = {
  // vLLM and SGLang.
  structural_tag: "'grammar' or 'json_schema'",
  guided_json_object: "'response_format' of the type json_object",
  // TensorRT-LLM.
  guided_decoding: "'structured_outputs'",
  guided_decoding_params: "'structured_outputs'",
  // text-generation-webui and TabbyAPI.
  grammar_string: "'grammar'",
  regex_pattern: "'regex'",
  // Ollama.
  format: "'response_format'",
  // llama.cpp.
  grammar_lazy: "'grammar', which holds from the first token",
  grammar_triggers: "'grammar', which holds from the first token",
  // Aphrodite, LMDeploy and Guidance.
  regex_schema: "'regex'",
  lark_grammar: "'grammar' of the type lark",
  ebnf_grammar: "'ebnf'",
};

/** Front-ends send empty values for constraints that are off. */
const isOff = (value: unknown): boolean =>
  [undefined, null, false, ''].includes(value as null) ||
  (typeof value === 'object' && Object.keys(value as object).length === 0);

/**
 * Refuses a constraint that would be ignored, because then the text would not follow it.
 * @throws ApiError 400 that names the field
 */
export function refuseForeignConstraints(body: Readonly<Record<string, unknown>>): void {
  for (const [name, instead] of Object.entries(FOREIGN_CONSTRAINTS)) {
    if (isOff(body[name])) continue;
    throw unsupportedParameter(name, `is a constraint of another server; send ${instead} in its place`);
  }
}
