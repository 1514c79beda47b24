/**
 * The kinds of OpenAI-compatible servers: openai-fields.ts has what each accepts in the body of POST
 * /completions.
 */
export const FLAVORS = [
  'generic',
  'continuo',
  'openai',
  'vllm',
  'llm-d',
  'llamacpp',
  'litellm',
  'openrouter',
] as const;
export type Flavor = (typeof FLAVORS)[number];
