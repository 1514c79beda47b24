import { describe, expect, test } from 'vitest';
import { GenerationMeter } from '../../../origin/http/generation-meter.ts';
import { createMetrics, recordSteps } from '../../../origin/http/metrics.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';

const metricsOf = () =>
  createMetrics({
    health: () => ({ status: 'ready', models: [], running: 0, waiting: 0 }),
    engines: () => [],
  });

async function values(metrics: ReturnType<typeof metricsOf>): Promise<Map<string, number>> {
  const lines = (await metrics.registry.metrics())
    .split('\n')
    .filter((line) => /^(continuo|gen_ai)/.test(line));
  return new Map(
    lines.map((line) => [
      line.replace(/^continuo_origin_|gen_ai_operation_name=.*"continuo",| [^ ]+$/g, ''),
      Number(line.split(' ').at(-1)),
    ]),
  );
}

const token = (choice: number, completionTokens = 1): GenerationEvent => ({
  type: 'token',
  choice,
  text: 'x',
  completionTokens,
});
const finish = (choice: number): GenerationEvent => ({
  type: 'finish',
  choice,
  reason: 'length',
  stopReason: null,
  completionTokens: 2,
});
const done: GenerationEvent = {
  type: 'done',
  usage: { promptTokens: 5, cachedTokens: 2, completionTokens: 4 },
  timings: { queueMs: 100, promptMs: 400, generationMs: 9000 },
};

describe('GenerationMeter', () => {
  test('measures time to first token from arrival, then inter-token latency by choice', async () => {
    const metrics = metricsOf();
    let now = 1000;
    const meter = new GenerationMeter(metrics, () => now, { model: 'tiny', receivedAt: 400, stream: true });
    for (const [time, choice, tokens] of [
      [1000, 0, 1],
      [1200, 1, 1],
      [1500, 0, 2],
      [1600, 1, 5],
    ] as const) {
      now = time;
      meter.observe([token(choice, tokens)]);
    }
    meter.observe([finish(0), finish(1), done]);
    meter.end(true);
    const seen = await values(metrics);
    expect(seen.get('first_token_seconds_sum{model="tiny"}')).toBe(0.6);
    const [minute, ...rest] = metrics.recent.of('tiny', now);
    expect([minute!.tokens, minute!.delays.indexOf(1), rest]).toEqual([7, 9, []]);
    expect(seen.get('first_token_seconds_count{model="tiny"}')).toBe(1);
    expect(seen.get('inter_token_seconds_sum{model="tiny"}')).toBeCloseTo(0.5 + 0.4);
    expect(seen.get('inter_token_seconds_count{model="tiny"}')).toBe(5);
    expect(seen.get('prompt_tokens_total{model="tiny"}')).toBe(5);
    expect(seen.get('cached_tokens_total{model="tiny"}')).toBe(2);
    expect(seen.get('completion_tokens_total{model="tiny"}')).toBe(4);
    expect(meter.outcome).toBe('done');
    const server = (name: string) =>
      seen.get(`gen_ai_server_${name}_seconds_sum{gen_ai_request_model="tiny"}`);
    expect(server('request_duration')).toBe(1.2);
    expect(server('time_to_first_token')).toBe(0.6);
    // Two choices of two tokens each: one token each after the first.
    expect(server('time_per_output_token')).toBe(9);
  });

  test('measures time to first token of a plain answer from arrival, preparation included', async () => {
    const metrics = metricsOf();
    const meter = new GenerationMeter(metrics, () => 90_000, {
      model: 'tiny',
      receivedAt: 80_000,
      stream: false,
    });
    meter.observe([token(0), token(0), done]);
    const seen = await values(metrics);
    // The engine took 9.5 s, 9 s of them after the first token.
    expect(seen.get('first_token_seconds_sum{model="tiny"}')).toBe(1);
    expect(seen.has('inter_token_seconds_count{model="tiny"}')).toBe(false);
  });

  test('records no time to first token if there is no token', async () => {
    const metrics = metricsOf();
    const meter = new GenerationMeter(metrics, () => 500, { model: 'tiny', receivedAt: 0, stream: false });
    const usage = { promptTokens: 5, cachedTokens: 0, completionTokens: 0 };
    meter.observe([{ type: 'done', usage, timings: { queueMs: 100, promptMs: 400, generationMs: 0 } }]);
    const seen = await values(metrics);
    expect(seen.get('first_token_seconds_count{model="tiny"}') ?? 0).toBe(0);
  });

  test('counts and returns the tokens of a stream whose client disconnected', async () => {
    const metrics = metricsOf();
    const meter = new GenerationMeter(metrics, () => 0, { model: 'tiny', receivedAt: 0, stream: true });
    meter.observe([{ type: 'accepted', model: 'tiny', promptTokens: [4, 3] }]);
    const started = (prompt: number) => ({ type: 'started', prompt, cachedTokens: 0, queueMs: 0 }) as const;
    meter.observe([started(0), started(1), token(0, 2), token(1, 1), token(0, 5)]);
    meter.end(false);
    const seen = await values(metrics);
    expect(seen.get('completion_tokens_total{model="tiny"}')).toBe(6);
    expect(seen.has('prompt_tokens_total{model="tiny"}')).toBe(false);
    expect(seen.get('aborts_total{model="tiny"}')).toBe(1);
    expect(meter.outcome).toBe('aborted');
    expect(meter.usage).toEqual({ promptTokens: 7, cachedTokens: 0, completionTokens: 6 });
  });

  test('counts the usage up to an error, and the error by its code', async () => {
    const metrics = metricsOf();
    const meter = new GenerationMeter(metrics, () => 0, { model: 'tiny', receivedAt: 0, stream: true });
    expect(meter.outcome).toBe('aborted');
    const usage = { promptTokens: 5, cachedTokens: 0, completionTokens: 1 };
    meter.observe([
      { type: 'error', code: 'upstream_timeout', message: '', param: null, retryable: false, usage },
    ]);
    meter.end(true);
    const seen = await values(metrics);
    expect(seen.get('stream_errors_total{model="tiny",code="upstream_timeout"}')).toBe(1);
    expect(seen.get('completion_tokens_total{model="tiny"}')).toBe(1);
    expect(meter.outcome).toBe('upstream_timeout');
  });
});

test('records batch sizes and times of each step', async () => {
  const metrics = metricsOf();
  recordSteps(metrics, 'tiny', [
    { kind: 'decode', rows: 3, tokens: 3, modelMs: 20, samplingMs: 4, otherMs: 1 },
    { kind: 'decode', rows: 1, tokens: 1, modelMs: 0, samplingMs: 0, otherMs: 0 },
    { kind: 'prefill', rows: 1, tokens: 64, modelMs: 50, samplingMs: 0, otherMs: 0 },
  ]);
  const seen = await values(metrics);
  expect(seen.get('batch_rows_sum{model="tiny",kind="decode"}')).toBe(4);
  expect(seen.get('step_seconds_sum{model="tiny",kind="decode",part="model"}')).toBe(0.02);
  expect(seen.get('step_seconds_sum{model="tiny",kind="decode",part="sampling"}')).toBe(0.004);
  expect(seen.get('step_seconds_sum{model="tiny",kind="prefill",part="model"}')).toBe(0.05);
});
