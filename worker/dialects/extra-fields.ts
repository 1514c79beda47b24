import { completionRequest } from '../../shared/completion.ts';
import { samplingFields } from '../../shared/completion-sampling.ts';
import { ApiError } from '../../shared/errors.ts';
import { nestsTooDeep } from './constraints.ts';

/** Scheduling and transport fields of other servers, never accepted from outside and never passed on. */
const SERVICE_FIELDS: ReadonlySet<string> = new Set([
  'priority',
  'request_id',
  'session_id',
  'kv_transfer_params',
  'vllm_xargs',
  'stream_interval',
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
