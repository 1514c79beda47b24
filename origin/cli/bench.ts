import { CommandError, commaList, EXIT, whole, withExamples } from '@continuo/origin/terminal/program.ts';
import { createBar } from '@continuo/origin/terminal/progress.ts';
import type { Command } from 'commander';
import type { Access } from './access.ts';
import { loadFigures, runLoad, type Trace } from './load.ts';
import type { OpenSession } from './session.ts';
import { readSse, type TracedRequest, tracedRequests } from './traced-requests.ts';

/** `continuo bench`: measures a server as its callers see it. `npm run bench` measures the layers alone. */

interface BenchOptions {
  readonly model: string;
  readonly concurrency: readonly number[];
  readonly requests: number;
  readonly maxTokens: number;
  readonly prompt: string;
}

const PROMPT = 'Once upon a time there was a king who had three daughters.';

/** Names of three figures, in milliseconds. */
const TIMES = ['first_token', 'per_token', 'between'] as const;

const COLUMNS = [
  ...['concurrency', 'requests', 'errors', 'requests_per_second', 'tokens_per_second'],
  ...TIMES.flatMap((name) => [`${name}_p50_ms`, `${name}_p99_ms`]),
];

const counts = (text: string): number[] => commaList(text).map(whole(1));

/** @param now milliseconds, monotonic */
export function addBenchCommand(program: Command, open: OpenSession, now: () => number): void {
  const bench = program
    .command('bench')
    .description('measure requests/s, tokens/s, time to the first token, per token and between chunks')
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
    const { access, terminal, results } = open();
    const requests = tracedRequests(new URL('/v1/completions', access.url), now);
    const request = requestOf(access, options);
    let isReached = false;
    const send = async () => {
      const trace = await requests.post(request);
      isReached ||= trace.status !== 0;
      bar?.increment();
      return trace;
    };
    const total = options.concurrency.length * options.requests;
    const bar = terminal.showsProgress
      ? createBar({ stream: terminal.stderr, format: '{bar} {value}/{total} requests' })
      : null;
    bar?.start(total, 0);
    const rows: Row[] = [];
    try {
      for (const concurrency of options.concurrency) {
        rows.push(await measure(send, options.requests, concurrency, now));
      }
    } finally {
      bar?.stop();
      requests.close();
    }
    results.list(
      rows.map(({ reasons: _, ...row }) => row),
      COLUMNS,
    );
    const reasons = new Set(rows.flatMap((row) => row.reasons));
    for (const reason of reasons) terminal.note(reason);
    if (rows.every(({ errors, requests }) => errors === requests))
      throw new CommandError('All requests failed.', isReached ? EXIT.failed : EXIT.unreachable);
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
  send: () => Promise<Trace>,
  requests: number,
  concurrency: number,
  now: () => number,
): Promise<Row> {
  const begun = now();
  const traces = await runLoad(concurrency, requests, send);
  const { timeToFirstToken, perToken, interToken, ...figures } = loadFigures(traces, now() - begun);
  const shown = (value: number) => (Number.isNaN(value) ? null : Number(value.toFixed(1)));
  const times = { first_token: timeToFirstToken, per_token: perToken, between: interToken };
  const shownTimes = TIMES.flatMap((name) =>
    (['p50', 'p95', 'p99'] as const).map((part) => [`${name}_${part}_ms`, shown(times[name][part])]),
  );
  return {
    concurrency,
    requests,
    errors: figures.errors,
    requests_per_second: shown(figures.requestsPerSecond),
    tokens_per_second: shown(figures.tokensPerSecond),
    ...Object.fromEntries(shownTimes),
    reasons: figures.reasons,
  };
}

/** The request that is sent again and again. */
function requestOf({ key }: Access, { model, prompt, maxTokens }: BenchOptions): TracedRequest {
  const fields = { model, prompt, max_tokens: maxTokens, ignore_eos: true, stream: true };
  return {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...fields, stream_options: { include_usage: true } }),
    read: readSse,
  };
}
