import { type CompletionRequest, completionRequest } from '../../shared/completion.ts';
import { samplingFields } from '../../shared/completion-sampling.ts';
import { ApiError } from '../../shared/errors.ts';
import { type NamedConstraint, nestsTooDeep } from './constraints.ts';

/**
 * Fields that only the operator may set on other servers. They are never sent on, because they would act with the
 * operator's key and beyond the limits of tenant and key.
 */
const SERVICE_FIELDS: ReadonlySet<string> = new Set([
  // Scheduling and transport.
  ...['priority', 'request_id', 'rid', 'session_id', 'session_params', 'stream_interval', 'vllm_xargs'],
  // Slots, machines and KV transfer (llama.cpp, vLLM, SGLang, TensorRT-LLM).
  ...['id_slot', 'slot_id', 'data_parallel_rank', 'kv_transfer_params', 'disaggregated_params'],
  ...['bootstrap_host', 'bootstrap_port', 'bootstrap_room'],
  // Addresses that would receive the operator's key (LiteLLM).
  ...['api_base', 'base_url', 'api_key', 'custom_llm_provider'],
  // Other models than the requested one (LiteLLM, OpenRouter).
  ...['model_list', 'fallbacks', 'models', 'provider', 'route'],
  // Adapters, by name or by path (llama.cpp, SGLang, TensorRT-LLM, TGI).
  ...['lora', 'lora_path', 'lora_request', 'adapter_id', 'adapter_source'],
  // Code (SGLang, vLLM).
  ...['custom_logit_processor', 'custom_params', 'logits_processors'],
  // Prices and storage of requests (OpenAI).
  ...['service_tier', 'store'],
]);

/** Sampling fields that the upstream client rewrites, because other servers read them differently. */
const REWRITTEN: ReadonlySet<string> = new Set(['seed', 'logit_bias', 'use_beam_search']);

/** Aliases of sampling fields → the name that is sent. */
const CANONICAL: ReadonlyMap<string, string> = new Map([
  ['repeat_penalty', 'repetition_penalty'],
  ['mirostat_target', 'mirostat_tau'],
  ['mirostat_lr', 'mirostat_eta'],
  ['typ_p', 'typical_p'],
]);

/** Returns whether other servers get a field unchanged. */
function isPassedThrough(name: string, value: unknown): boolean {
  // Neutral values are sent as well: they may not be the server's default.
  if (Object.hasOwn(samplingFields, name)) return value !== null && !REWRITTEN.has(name);
  return !Object.hasOwn(completionRequest.shape, name) && !SERVICE_FIELDS.has(name);
}

/** Returns unknown fields and sampling fields. */
function passedThrough(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const extra = Object.entries(body).filter(([name, value]) => isPassedThrough(name, value));
  const deep = extra.find(([, value]) => nestsTooDeep(value));
  if (deep) {
    const name = deep[0].slice(0, 40);
    throw new ApiError('invalid_value', `Invalid '${name}': the value nests too deep. Send fewer levels.`, {
      param: name,
    });
  }
  return Object.fromEntries(extra.map(([name, value]) => [CANONICAL.get(name) ?? name, value]));
}

/** Returns the constraint under its original name. Servers ignore names that they do not know. */
function originalConstraint(
  request: CompletionRequest,
  constraint: NamedConstraint | null,
): Record<string, unknown> {
  const name = constraint?.field.split(/[.[]/)[0] as keyof CompletionRequest | undefined;
  return name === undefined || name === 'tools' ? {} : { [name]: request[name] };
}

/**
 * Returns the fields that OpenAI-compatible upstreams get unchanged.
 * @throws ApiError 400 for a value that nests too deep to be serialized
 */
export const passthroughFields = (
  body: Readonly<Record<string, unknown>>,
  request: CompletionRequest,
  constraint: NamedConstraint | null,
): Record<string, unknown> => ({ ...passedThrough(body), ...originalConstraint(request, constraint) });
