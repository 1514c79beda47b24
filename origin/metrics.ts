import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { OriginHealth } from '../shared/generation.ts';
import type { StepReport } from './engine/messages.ts';

/** Everything GET /metrics tells; one registry per origin, nothing global. */

const TIMES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(health: () => OriginHealth) {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name: `continuo_origin_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, buckets: number[], labelNames: L[] = []) =>
    new Histogram({ name: `continuo_origin_${name}`, help, buckets, labelNames, registers });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: `continuo_origin_${name}`,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge('running_sequences', 'Sequences that hold a slot.', () => health().running);
  gauge('waiting_sequences', 'Sequences in the queue.', () => health().waiting);
  gauge('ready', '1 while requests are taken.', () => Number(health().status === 'ready'));
  gauge('resident_bytes', 'Memory of the process, all threads together.', () => process.memoryUsage.rss());
  return {
    registry,
    requests: counter('requests_total', 'Answers by route and HTTP status.', ['route', 'status']),
    aborts: counter('aborts_total', 'Generations given up because the caller went away.'),
    failures: counter('stream_errors_total', 'Streams that ended with an error event, by code.', ['code']),
    promptTokens: counter('prompt_tokens_total', 'Prompt tokens of finished generations.'),
    cachedTokens: counter('cached_tokens_total', 'Prompt tokens taken from the prefix cache.'),
    completionTokens: counter('completion_tokens_total', 'Tokens generated.'),
    queueSeconds: histogram('queue_seconds', 'From submission to a slot.', TIMES),
    firstTokenSeconds: histogram('first_token_seconds', 'From arrival to the first token.', TIMES),
    interTokenSeconds: histogram('inter_token_seconds', 'Between token events of one choice.', TIMES),
    batchRows: histogram('batch_rows', 'Sequences per step.', BATCHES, ['kind']),
    stepSeconds: histogram('step_seconds', 'Time of one step by part.', TIMES, ['kind', 'part']),
  };
}

/** Adds the counters of the engine's steps. */
export function recordSteps(metrics: Metrics, reports: readonly StepReport[]): void {
  for (const { kind, rows, modelMs, samplingMs, otherMs } of reports) {
    metrics.batchRows.observe({ kind }, rows);
    metrics.stepSeconds.observe({ kind, part: 'model' }, modelMs / 1000);
    metrics.stepSeconds.observe({ kind, part: 'sampling' }, samplingMs / 1000);
    metrics.stepSeconds.observe({ kind, part: 'other' }, otherMs / 1000);
  }
}
