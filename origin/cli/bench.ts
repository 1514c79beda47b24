import { CommandError, commaList, whole, withExamples } from '@continuo/origin/terminal/program.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { SingleBar } from 'cli-progress';
import type { Command } from 'commander';
import { type Api, streamCompletion } from './api.ts';
import { quantile } from './quantile.ts';
import type { OpenSession } from './session.ts';

/** `continuo bench`: measures a server as its callers see it. `npm run bench` measures the layers of this one. */

interface BenchOptions {
  readonly model: string;
  readonly concurrency: readonly number[];
  readonly requests: number;
  readonly maxTokens: number;
  readonly prompt: string;
}

/** Times of one request, in milliseconds of a monotonic clock. */
interface Trace {
  readonly sent: number;
  /** When each chunk with text arrived. */
  readonly chunks: readonly number[];
  readonly tokens: number;
  /** Null if the request succeeded. */
  readonly error: string | null;
}

const PROMPT = 'Once upon a time there was a king who had three daughters.';

const COLUMNS = [
  ...['concurrency', 'requests', 'errors', 'tokens_per_second'],
  ...['first_token_p50_ms', 'first_token_p95_ms', 'between_p50_ms', 'between_p95_ms'],
];

const counts = (text: string): number[] => commaList(text).map(whole(1));

/** @param now milliseconds, monotonic */
export function addBenchCommand(program: Command, open: OpenSession, now: () => number): void {
  const bench = program
    .command('bench')
    .description('measure tokens/s, time to the first token and time between chunks of the server')
    .option('-m, --model <name>', 'model', 'default')
    .option('--concurrency <numbers>', 'comma-separated numbers of simultaneous requests', counts, [1, 4, 8])
    .option('--requests <number>', 'requests for each of these numbers', whole(1), 16)
    .option('--max-tokens <number>', 'tokens of each completion', whole(1), 64)
    .option('--prompt <text>', 'prompt', PROMPT)
    .addHelpText('after', '\nThe tokens count against the limits of the key.');
  withExamples(
    bench,
    'continuo bench',
    'continuo bench --concurrency 1,16 --requests 64 --max-tokens 128 --json',
  ).action(async (options: BenchOptions) => {
    const { api, terminal, showList } = open();
    const total = options.concurrency.length * options.requests;
    const bar = terminal.showsProgress
      ? new SingleBar({ stream: terminal.stderr, format: '{bar} {value}/{total} requests', linewrap: true })
      : null;
    bar?.start(total, 0);
    const rows: Row[] = [];
    try {
      for (const concurrency of options.concurrency) {
        rows.push(await measure(api, options, concurrency, now, () => bar?.increment()));
      }
    } finally {
      bar?.stop();
    }
    showList(
      rows.map(({ reasons: _, ...row }) => row),
      COLUMNS,
    );
    const reasons = new Set(rows.flatMap((row) => row.reasons));
    for (const reason of reasons) terminal.note(reason);
    if (rows.every(({ errors, requests }) => errors === requests))
      throw new CommandError('All requests failed.');
  });
}

interface Row extends Readonly<Record<string, unknown>> {
  readonly requests: number;
  readonly errors: number;
  /** Distinct errors. */
  readonly reasons: readonly string[];
}

/** Keeps `concurrency` requests running until all have ended. */
async function measure(
  api: Api,
  options: BenchOptions,
  concurrency: number,
  now: () => number,
  onEnd: () => void,
): Promise<Row> {
  const traces: Trace[] = [];
  let left = options.requests;
  const begun = now();
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      traces.push(await run(api, options, now));
      onEnd();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  const seconds = (now() - begun) / 1000;
  const good = traces.filter(({ error }) => error === null);
  const first = good.flatMap(({ sent, chunks: [at] }) => (at === undefined ? [] : [at - sent]));
  const between = good.flatMap(({ chunks }) => chunks.slice(1).map((at, index) => at - chunks[index]!));
  const shown = (values: readonly number[], q: number) =>
    values.length === 0 ? null : Number(quantile(values, q).toFixed(1));
  return {
    concurrency,
    requests: options.requests,
    errors: traces.length - good.length,
    tokens_per_second: Number((good.reduce((sum, { tokens }) => sum + tokens, 0) / seconds).toFixed(1)),
    first_token_p50_ms: shown(first, 0.5),
    first_token_p95_ms: shown(first, 0.95),
    between_p50_ms: shown(between, 0.5),
    between_p95_ms: shown(between, 0.95),
    reasons: [...new Set(traces.flatMap(({ error }) => error ?? []))],
  };
}

async function run(api: Api, { model, prompt, maxTokens }: BenchOptions, now: () => number): Promise<Trace> {
  const sent = now();
  const chunks: number[] = [];
  let tokens = 0;
  const traceOf = (error: string | null): Trace => ({ sent, chunks, tokens, error });
  try {
    const fields = { model, prompt, max_tokens: maxTokens, ignore_eos: true };
    for await (const chunk of streamCompletion(api, { ...fields, stream_options: { include_usage: true } })) {
      if (chunk.choices.some(({ text }) => text !== '')) chunks.push(now());
      tokens = chunk.usage?.completion_tokens ?? tokens;
    }
    return traceOf(null);
  } catch (error) {
    return traceOf(errorMessage(error));
  }
}
