import { expect, test } from 'vitest';
import { request } from '../../support/generation-request.ts';
import { originForEachTest } from './running-origin.ts';

const origin = originForEachTest();

const GEN_AI =
  'gen_ai_operation_name="text_completion",gen_ai_provider_name="continuo",gen_ai_request_model="tiny"';

test('GET /metrics counts requests, tokens, times and aborts', async () => {
  const prefixStore = {
    bytes: 64,
    hits: 8,
    misses: 2,
    storedChunks: 5,
    evictedChunks: 1,
    restoredTokens: 96,
    copySeconds: 0.25,
  };
  const prefixDisk = { bytes: 512, files: 2, readChunks: 4, writtenChunks: 6, failedChunks: 1 };
  const stores = { prefixStore, prefixDisk };
  origin.engine.status = { running: 3, waiting: 2, suspended: 1, suspensions: 7, healthy: true, ...stores };
  await (await origin.call('/generate', { body: request() })).text();
  await origin.error('/generate', { body: '{' });
  const response = await origin.operator('/metrics');
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  const text = await response.text();
  for (const line of [
    'continuo_origin_running_sequences{model="tiny"} 3',
    'continuo_origin_waiting_sequences{model="tiny"} 2',
    'continuo_origin_suspended_sequences{model="tiny"} 1',
    'continuo_origin_suspensions{model="tiny"} 7',
    'continuo_origin_prefix_store_bytes{model="tiny"} 64',
    'continuo_origin_prefix_store_hits{model="tiny"} 8',
    'continuo_origin_prefix_store_misses{model="tiny"} 2',
    'continuo_origin_prefix_store_restored_tokens{model="tiny"} 96',
    'continuo_origin_prefix_store_copy_seconds{model="tiny"} 0.25',
    'continuo_origin_prefix_disk_bytes{model="tiny"} 512',
    'continuo_origin_prefix_disk_files{model="tiny"} 2',
    'continuo_origin_prefix_disk_read_chunks{model="tiny"} 4',
    'continuo_origin_prefix_disk_written_chunks{model="tiny"} 6',
    'continuo_origin_prefix_disk_failed_chunks{model="tiny"} 1',
    'continuo_origin_requests_total{route="/generate",status="200"} 1',
    'continuo_origin_requests_total{route="/generate",status="502"} 1',
    'continuo_origin_prompt_tokens_total{model="tiny"} 3',
    'continuo_origin_cached_tokens_total{model="tiny"} 1',
    'continuo_origin_completion_tokens_total{model="tiny"} 2',
    'continuo_origin_first_token_seconds_count{model="tiny"} 1',
    'continuo_origin_inter_token_seconds_count{model="tiny"} 1',
    'vllm:num_requests_running{model_name="tiny"} 3',
    'vllm:num_requests_waiting{model_name="tiny"} 2',
    `gen_ai_server_request_duration_seconds_count{${GEN_AI}} 1`,
    `gen_ai_server_time_to_first_token_seconds_count{${GEN_AI}} 1`,
    `gen_ai_server_time_per_output_token_seconds_count{${GEN_AI}} 1`,
    'continuo_origin_model_state{model="tiny",state="loaded"} 1',
    'continuo_origin_model_state{model="tiny",state="failed"} 0',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  const [model] = origin.fleet.models;
  expect(text).toContain(`\nvllm:kv_cache_usage_perc{model_name="tiny"} ${3 / model!.model.slots}\n`);
});

test('an error sent as the HTTP status does not count as a stream error', async () => {
  const error = {
    type: 'error',
    code: 'invalid_grammar',
    message: 'no',
    param: 'grammar',
    retryable: false,
  } as const;
  origin.engine.script = (engine, id) => engine.say(id, error);
  const errors = async () =>
    (await origin.metrics.registry.metrics()).match(/^continuo_origin_stream_errors.*$/gm);
  const constraint = { type: 'gbnf', value: 'root ::= "a"' } as const;
  expect(await origin.error('/generate', { body: request({ constraint }) })).toMatchObject({ status: 400 });
  expect(await errors()).toBeNull();
  origin.engine.script = (engine, id) => {
    engine.say(id, { type: 'started', prompt: 0, cachedTokens: 0, queueMs: 0 });
    engine.say(id, error);
  };
  await (await origin.call('/generate', { body: request() })).text();
  await expect.poll(errors).toEqual([expect.stringMatching(/code="invalid_grammar"\} 1$/)]);
});

test('callers cannot reach the metrics, signed or not', async () => {
  for (const call of [{}, { signature: null }]) {
    expect(await origin.error('/metrics', call)).toMatchObject({ status: 404, code: 'unknown_url' });
  }
});
