import { modelState, type OriginHealth } from '@continuo/shared/origin-model.ts';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ChunkDirectoryStatus } from '../engine/kv/second-tier.ts';
import type { EngineStatus, PrefixMemoryStatus, StepReport } from '../engine/messages.ts';
import { RecentMinutes } from './recent-minutes.ts';
import { createStandardMetrics, type ModelLoad } from './standard-metrics.ts';

/** The metrics of GET /metrics; one registry per origin. */

const TIMES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

export type Metrics = ReturnType<typeof createMetrics>;

/** The values of the gauges. */
interface Measured {
  health(): OriginHealth;
  /** Counts of every engine. An engine and its replacement have the same model name. */
  engines(): readonly MeasuredEngine[];
}

type MeasuredEngine = Pick<
  EngineStatus,
  | 'running'
  | 'waiting'
  | 'suspended'
  | 'suspensions'
  | 'usesGraphs'
  | 'runsAhead'
  | 'prefixStore'
  | 'prefixDisk'
> & { readonly model: string; readonly slots?: number };

export function createMetrics(measured: Measured) {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name: `continuo_origin_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, buckets: number[], labelNames: L[] = []) =>
    new Histogram({ name: `continuo_origin_${name}`, help, buckets, labelNames, registers });
  const gauge = (name: string, help: string, read: (gauge: Gauge) => void, labelNames: string[] = []) =>
    new Gauge({
      name: `continuo_origin_${name}`,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        read(this);
      },
    });
  const perModel = (name: string, help: string, count: (engine: MeasuredEngine) => number) =>
    gauge(
      name,
      help,
      (values) => {
        for (const { id } of measured.health().models) values.set({ model: id }, 0);
        for (const engine of measured.engines()) values.inc({ model: engine.model }, count(engine));
      },
      ['model'],
    );
  perModel('running_sequences', 'Sequences that hold a slot.', ({ running }) => running);
  perModel('waiting_sequences', 'Sequences in the queue.', ({ waiting }) => waiting);
  perModel('suspended_sequences', 'Sequences that wait to continue.', ({ suspended }) => suspended ?? 0);
  perModel('suspensions', 'Suspensions since the engine started.', ({ suspensions }) => suspensions ?? 0);
  perModel('cuda_graphs', '1 if decode steps run as CUDA graphs.', ({ usesGraphs }) =>
    Number(usesGraphs ?? false),
  );
  perModel('runs_ahead', '1 if decode steps begin before the last tokens are read.', ({ runsAhead }) =>
    Number(runsAhead ?? false),
  );
  const store = (name: string, help: string, count: keyof PrefixMemoryStatus) =>
    perModel(`prefix_store_${name}`, help, ({ prefixStore }) => prefixStore?.[count] ?? 0);
  store('bytes', 'Memory of stored prefixes.', 'bytes');
  store('hits', 'Prompts of which a stored prefix was found since the engine started.', 'hits');
  store('misses', 'Prompts of which none was found since the engine started.', 'misses');
  store('stored_chunks', 'Chunks stored since the engine started.', 'storedChunks');
  store('evicted_chunks', 'Chunks evicted since the engine started.', 'evictedChunks');
  store('restored_tokens', 'Prompt tokens restored since the engine started.', 'restoredTokens');
  store('copy_seconds', 'Time to copy KV out of slots and back since the engine started.', 'copySeconds');
  const disk = (name: string, help: string, count: keyof ChunkDirectoryStatus) =>
    perModel(`prefix_disk_${name}`, help, ({ prefixDisk }) => prefixDisk?.[count] ?? 0);
  disk('bytes', 'Disk space of stored prefixes.', 'bytes');
  disk('files', 'Files of stored prefixes.', 'files');
  disk('read_chunks', 'Chunks read since the engine started.', 'readChunks');
  disk('written_chunks', 'Chunks written since the engine started.', 'writtenChunks');
  disk('failed_chunks', 'Chunks not written or read, or damaged, since the engine started.', 'failedChunks');
  gauge('ready', '1 while requests are accepted.', (ready) =>
    ready.set(Number(measured.health().status === 'ready')),
  );
  gauge('resident_bytes', 'Memory of the process, all threads together.', (resident) =>
    resident.set(process.memoryUsage.rss()),
  );
  gauge(
    'model_state',
    '1 for the state each model is in.',
    (states) => {
      for (const { id, state } of measured.health().models) {
        for (const option of modelState.options)
          states.set({ model: id, state: option }, Number(option === state));
      }
    },
    ['model', 'state'],
  );
  return {
    registry,
    loads: () => loadsOf(measured),
    recent: new RecentMinutes(TIMES),
    standard: createStandardMetrics(registry, () => loadsOf(measured)),
    requests: counter('requests_total', 'Answers by route and HTTP status.', ['route', 'status']),
    aborts: counter('aborts_total', 'Generations cancelled because the client disconnected.', ['model']),
    failures: counter('stream_errors_total', 'Streams that ended with an error event, by code.', [
      'model',
      'code',
    ]),
    promptTokens: counter('prompt_tokens_total', 'Prompt tokens of finished generations.', ['model']),
    cachedTokens: counter('cached_tokens_total', 'Prompt tokens taken from the prefix cache.', ['model']),
    completionTokens: counter(
      'completion_tokens_total',
      'Generated tokens. Of an aborted generation, those that were reported before.',
      ['model'],
    ),
    queueSeconds: histogram('queue_seconds', 'From submission to a slot.', TIMES, ['model']),
    firstTokenSeconds: histogram('first_token_seconds', 'From arrival to the first token.', TIMES, ['model']),
    interTokenSeconds: histogram('inter_token_seconds', 'Between token events of one choice.', TIMES, [
      'model',
    ]),
    batchRows: histogram('batch_rows', 'Sequences per step.', BATCHES, ['model', 'kind']),
    stepSeconds: histogram('step_seconds', 'Time of one step by part.', TIMES, ['model', 'kind', 'part']),
  };
}

/** An engine and its replacement count as one model. */
function loadsOf({ health, engines }: Measured): ModelLoad[] {
  const loads = new Map<string, ModelLoad>();
  const add = (model: string, running: number, waiting: number, slots: number) => {
    const load = loads.get(model) ?? { model, running: 0, waiting: 0, slots: 0 };
    const sums = { running: load.running + running, waiting: load.waiting + waiting };
    loads.set(model, { model, ...sums, slots: load.slots + slots });
  };
  for (const { id } of health().models) add(id, 0, 0, 0);
  for (const { model, running, waiting, slots = 0 } of engines()) add(model, running, waiting, slots);
  return [...loads.values()];
}

/** Adds the counters of the engine's steps. */
export function recordSteps(metrics: Metrics, model: string, reports: readonly StepReport[]): void {
  for (const { kind, rows, modelMs, samplingMs, otherMs } of reports) {
    metrics.batchRows.observe({ model, kind }, rows);
    metrics.stepSeconds.observe({ model, kind, part: 'model' }, modelMs / 1000);
    metrics.stepSeconds.observe({ model, kind, part: 'sampling' }, samplingMs / 1000);
    metrics.stepSeconds.observe({ model, kind, part: 'other' }, otherMs / 1000);
  }
}
