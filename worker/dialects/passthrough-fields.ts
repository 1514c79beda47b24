import { completionRequest } from '../../shared/completion.ts';
import { samplingFields } from '../../shared/completion-sampling.ts';
import { ApiError } from '../../shared/errors.ts';
import { nestsTooDeep } from './constraints.ts';

/**
 * What only the operator may ask of other servers, never accepted from outside and never passed on: it would be done
 * with the operator's key, and besides what tenant and key allow.
 */
const SERVICE_FIELDS: ReadonlySet<string> = new Set([
  // Scheduling and transport.
  ...['priority', 'request_id', 'rid', 'session_id', 'session_params', 'stream_interval', 'vllm_xargs'],
  // Slots and machines to compute on, or to fetch KV from (llama.cpp, vLLM, SGLang, TensorRT-LLM).
  ...['id_slot', 'slot_id', 'data_parallel_rank', 'kv_transfer_params', 'disaggregated_params'],
  ...['bootstrap_host', 'bootstrap_port', 'bootstrap_room'],
  // Addresses that would get the key (LiteLLM).
  ...['api_base', 'base_url', 'api_key', 'custom_llm_provider'],
  // Other models than the one asked for (LiteLLM, OpenRouter).
  ...['model_list', 'fallbacks', 'models', 'provider', 'route'],
  // Adapters, by name or by path (llama.cpp, SGLang, TensorRT-LLM, TGI).
  ...['lora', 'lora_path', 'lora_request', 'adapter_id', 'adapter_source'],
  // Code (SGLang, vLLM).
  ...['custom_logit_processor', 'custom_params', 'logits_processors'],
  // Prices, and what is kept of a request (OpenAI).
  ...['service_tier', 'store'],
]);

/** Sampling fields that are written anew for other servers, which read them otherwise. */
const REWRITTEN: ReadonlySet<string> = new Set(['seed', 'logit_bias', 'use_beam_search']);

/** Names of sampling fields that are sent on under another one. */
const CANONICAL: ReadonlyMap<string, string> = new Map([
  ['repeat_penalty', 'repetition_penalty'],
  ['mirostat_target', 'mirostat_tau'],
  ['mirostat_lr', 'mirostat_eta'],
  ['typ_p', 'typical_p'],
]);

/** Whether another server is to see a field as it was sent. */
function travels(name: string, value: unknown): boolean {
  // What is neutral here, and then left out, may be no server's default.
  if (Object.hasOwn(samplingFields, name)) return value !== null && !REWRITTEN.has(name);
  return !Object.hasOwn(completionRequest.shape, name) && !SERVICE_FIELDS.has(name);
}

/** @throws ApiError 400 for a value that could not be written out again */
export function extraFields(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const extra = Object.entries(body).filter(([name, value]) => travels(name, value));
  const deep = extra.find(([, value]) => nestsTooDeep(value));
  if (deep) {
    const name = deep[0].slice(0, 40);
    throw new ApiError('invalid_value', `Invalid '${name}': the value nests too deep.`, { param: name });
  }
  return Object.fromEntries(extra.map(([name, value]) => [CANONICAL.get(name) ?? name, value]));
}
