import { Gauge, Histogram, type Registry } from 'prom-client';

/**
 * Metrics under the names that other programs expect: OpenTelemetry's for servers of generative models, and
 * those of vLLM's that autoscalers and routers read.
 */

/** As OpenTelemetry advises. */
const DURATIONS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const PER_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

const LABELS = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'] as const;

const labelsOf = (model: string) => ({
  gen_ai_operation_name: 'text_completion',
  gen_ai_provider_name: 'continuo',
  gen_ai_request_model: model,
});

/** What a scrape shows of one model. */
export interface ModelLoad {
  readonly model: string;
  readonly running: number;
  readonly waiting: number;
  readonly slots: number;
}

/** @param loads of all models, once each */
export function createStandardMetrics(registry: Registry, loads: () => readonly ModelLoad[]) {
  const registers = [registry];
  const gauge = (name: string, help: string, read: (load: ModelLoad) => number) =>
    new Gauge({
      name: `vllm:${name}`,
      help,
      labelNames: ['model_name'],
      registers,
      collect() {
        this.reset();
        for (const load of loads()) this.set({ model_name: load.model }, read(load));
      },
    });
  gauge('num_requests_running', 'Sequences that hold a slot.', ({ running }) => running);
  gauge('num_requests_waiting', 'Sequences in the queue.', ({ waiting }) => waiting);
  gauge('kv_cache_usage_perc', 'Part of the slots that are taken, from 0 to 1.', ({ running, slots }) =>
    slots === 0 ? 0 : running / slots,
  );
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly L[],
  ) => new Histogram({ name: `gen_ai_server_${name}_seconds`, help, buckets, labelNames, registers });
  const duration = histogram('request_duration', 'From arrival to the end.', DURATIONS, [
    ...LABELS,
    'error_type',
  ]);
  const firstToken = histogram(
    'time_to_first_token',
    'From arrival to the first token.',
    FIRST_TOKEN,
    LABELS,
  );
  const perToken = histogram('time_per_output_token', 'Mean after the first token.', PER_TOKEN, LABELS);
  return {
    /** Milliseconds. @param error the code of a failure; '' = none */
    ended: (model: string, ms: number, error: string) =>
      duration.observe({ ...labelsOf(model), ...(error !== '' && { error_type: error }) }, ms / 1000),
    firstToken: (model: string, ms: number) => firstToken.observe(labelsOf(model), ms / 1000),
    perToken: (model: string, ms: number) => perToken.observe(labelsOf(model), ms / 1000),
  };
}
