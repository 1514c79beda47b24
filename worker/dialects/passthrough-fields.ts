import { type CompletionRequest, completionRequest } from '@continuo/shared/completion.ts';
import { samplingFields } from '@continuo/shared/completion-sampling.ts';
import { words } from '@continuo/shared/field-names.ts';
import type { NamedConstraint } from './constraints.ts';

/**
 * Fields that only the operator may set on other servers. They are never sent on, because they would act with
 * the operator's key and beyond the limits of tenant and key.
 */
const SERVICE_FIELDS: ReadonlySet<string> = new Set(
  [
    // Scheduling and transport.
    'priority request_id rid session_id session_params vllm_xargs',
    // Slots, machines and KV transfer (llama.cpp, vLLM, SGLang, TensorRT-LLM).
    'id_slot slot_id data_parallel_rank kv_transfer_params disaggregated_params bootstrap_host bootstrap_port',
    'bootstrap_room',
    // Addresses that would receive the operator's key, invented answers and repeated calls (LiteLLM).
    'api_base base_url api_key custom_llm_provider mock_response num_retries',
    // Other models than the requested one, and paid additions (LiteLLM, OpenRouter).
    'model_list fallbacks models provider route plugins',
    // Adapters, by name or by path (llama.cpp, SGLang, TensorRT-LLM, TGI).
    'lora lora_path lora_request adapter_id adapter_source',
    // Code (SGLang, vLLM).
    'custom_logit_processor custom_params logits_processors',
    // Prices and storage of requests (OpenAI).
    'service_tier store',
  ].flatMap(words),
);

/** Sampling fields that the upstream client rewrites, because other servers read them differently. */
const REWRITTEN: ReadonlySet<string> = new Set(['seed', 'logit_bias', 'use_beam_search']);

/** Aliases of sampling fields → the name that is sent. */
const CANONICAL: ReadonlyMap<string, string> = new Map([
  ['repeat_penalty', 'repetition_penalty'],
  ['mirostat_target', 'mirostat_tau'],
  ['mirostat_lr', 'mirostat_eta'],
  ['typ_p', 'typical_p'],
]);

const isScalar = (value: unknown): boolean => value === null || typeof value !== 'object';

/** Unknown objects may carry fields for the operator only (`extra_body`, `extra_headers`). */
const isPlain = (value: unknown): boolean =>
  isScalar(value) || (Array.isArray(value) && value.every(isScalar));

/** Returns whether other servers get a field unchanged. */
function isPassedThrough(name: string, value: unknown): boolean {
  // Neutral values are sent as well: they may not be the server's default.
  if (Object.hasOwn(samplingFields, name)) return value !== null && !REWRITTEN.has(name);
  return !Object.hasOwn(completionRequest.shape, name) && !SERVICE_FIELDS.has(name) && isPlain(value);
}

/** Returns sampling fields, and unknown fields that are scalars or lists of scalars. */
const passedThrough = (body: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(body)
      .filter(([name, value]) => isPassedThrough(name, value))
      .map(([name, value]) => [CANONICAL.get(name) ?? name, value]),
  );

/** Returns the constraint under its original name. Servers ignore names that they do not know. */
function originalConstraint(
  request: CompletionRequest,
  constraint: NamedConstraint | null,
): Record<string, unknown> {
  const name = constraint?.field.split(/[.[]/)[0] as keyof CompletionRequest | undefined;
  return name === undefined || name === 'tools' ? {} : { [name]: request[name] };
}

/** Returns the fields that OpenAI-compatible upstreams get unchanged. */
export const passthroughFields = (
  body: Readonly<Record<string, unknown>>,
  request: CompletionRequest,
  constraint: NamedConstraint | null,
): Record<string, unknown> => ({
  // A field in another form than other servers read, such as JSON text, is sent as it was parsed.
  ...passedThrough({ ...body, ...request }),
  ...originalConstraint(request, constraint),
});
