import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { startSystem } from '../../support/system.ts';
import { mean, median, percentiles } from '../bench/statistics.ts';
import { openAiTarget, type Target } from '../bench/target.ts';
import type { CallerOptions } from './caller-thread.ts';
import { type Answer, type Measurement, newTenant, post, type Scenario } from './scenario.ts';

const SECONDS = 4;
/** Each load in turn, because the speed of machines drifts. */
const ROUNDS = 3;
const WARM_UP_MS = 1000;
/** For the requests that run at the end of a measurement. */
const LAST_MS = 10_000;
const VICTIM = { prompt: 'Once upon a time', maxTokens: 250 };
const SMALL = { prompt: 'Once upon a time', maxTokens: 4 };

const ids = (count: number) => Array.from({ length: count }, (_, at) => 300 + ((7 * at) % 3000));
/** A prompt of which no request has computed any part: see `CallerOptions.body`. */
const newIds = (count: number) => ['NEW', ...ids(count - 1)];
const text = (length: number) => 'the cat sat on a mat '.repeat(Math.ceil(length / 21));

interface Load {
  readonly callers: number;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether the callers have a key; default: true. */
  readonly hasKey?: boolean;
  readonly resumes?: number;
  /** False if all of it is refused or not for the engine; default: true. */
  readonly computes?: boolean;
}

const completion = (body: Load['body'], callers = 4): Load => {
  return { callers, path: '/v1/completions', body: { model: 'default', cache_prompt: false, ...body } };
};

/** What the other tenant does. */
const LOADS: Readonly<Record<string, Load>> = {
  'long prompts': completion({ prompt: ids(1500), max_tokens: 1 }),
  scores: {
    callers: 4,
    path: '/v1/score',
    body: { model: 'default', prompt: ids(1500), continuations: ids(256).map((id) => [id]) },
  },
  'new long prompts': completion({ prompt: newIds(1500), max_tokens: 1 }),
  'scores of new prompts': {
    callers: 4,
    path: '/v1/score',
    body: { model: 'default', prompt: newIds(1500), continuations: ids(256).map((id) => [id]) },
  },
  'n = 128': completion({ prompt: ids(30), n: 128, max_tokens: 100, ignore_eos: true }, 1),
  'echo with logprobs': completion({ prompt: ids(1500), max_tokens: 0, echo: true, logprobs: 5 }),
  infill: completion({ prompt: text(2000), suffix: text(2000), max_tokens: 4 }),
  grammars: completion({ prompt: 'a', max_tokens: 200, guided_regex: '(a|b|[a-z ]{1,40}){1,60}' }, 16),
  'large bodies without a key': {
    ...completion({ prompt: text(1_800_000) }),
    hasKey: false,
    computes: false,
  },
  '/detokenize': { callers: 4, path: '/detokenize', body: { tokens: ids(262_144) }, computes: false },
  'resumed streams': { ...completion({ prompt: 'a', max_tokens: 250, stream: true }), resumes: 8 },
  '/tokenize': { callers: 4, path: '/tokenize', body: { prompt: text(20_000) }, computes: false },
};

interface Window {
  readonly from: number;
  readonly to: number;
}

interface Figures {
  /** Time in which the streams ran. */
  readonly streaming: Window;
  readonly tokensPerSecond: number;
  readonly first: { readonly p50: number; readonly p99: number };
  readonly plainMs: number;
}

/** Runs a request again and again, and returns what each gave. */
async function repeat<T>(once: () => Promise<T>, ms: number): Promise<readonly T[]> {
  const results: T[] = [];
  for (const until = performance.now() + ms; performance.now() < until; ) results.push(await once());
  return results;
}

async function victim(target: Target, plain: () => Promise<{ readonly ms: number }>): Promise<Figures> {
  const from = performance.now();
  const streams = await repeat(() => target.run(VICTIM), 500 * SECONDS);
  const streaming = { from, to: performance.now() };
  const ms = streams.reduce((sum, { sent, ended }) => sum + ended - sent, 0);
  const small = await repeat(() => target.run(SMALL), 250 * SECONDS);
  const plains = await repeat(plain, 250 * SECONDS);
  return {
    streaming,
    tokensPerSecond: (1000 * streams.reduce((sum, { tokens }) => sum + tokens, 0)) / ms,
    first: percentiles(small.map(({ sent, events, ended }) => (events[0] ?? ended) - sent)),
    plainMs: percentiles(plains.map((answer) => answer.ms)).p50,
  };
}

/** The means of what was measured before and after a load, because the speed of machines drifts. */
function between(before: Figures, after: Figures): Omit<Figures, 'streaming'> {
  const of = (figure: (one: Figures) => number) => mean([figure(before), figure(after)]);
  return {
    tokensPerSecond: of(({ tokensPerSecond }) => tokensPerSecond),
    first: { p50: of(({ first }) => first.p50), p99: of(({ first }) => first.p99) },
    plainMs: of(({ plainMs }) => plainMs),
  };
}

/**
 * Runs `measure` beside callers. Also returns how many of their requests were served per second of a window.
 */
async function beside<T>(
  options: CallerOptions,
  measure: () => Promise<T>,
  windowOf: (result: T) => Window,
): Promise<[T, number]> {
  const thread = new Worker(new URL('./caller-thread.ts', import.meta.url), { workerData: options });
  const served: Window[] = [];
  thread.on('message', ({ ms }: Answer) => {
    const to = performance.now();
    served.push({ from: to - ms, to });
  });
  try {
    await sleep(WARM_UP_MS);
    const result = await measure();
    const window = windowOf(result);
    // Requests that began in the window are counted by the part of their time in it.
    const enough = served.length + options.callers;
    for (let waited = 0; served.length < enough && waited < LAST_MS; waited += 50) await sleep(50);
    const parts = served.map(({ from, to }) => {
      return Math.max(0, Math.min(to, window.to) - Math.max(from, window.from)) / (to - from);
    });
    return [result, (1000 * parts.reduce((sum, part) => sum + part, 0)) / (window.to - window.from)];
  } finally {
    await thread.terminate();
  }
}

/** Returns the victim's figures beside callers of a server that only reads what they send. */
async function besideEmptyServer(options: CallerOptions, measure: () => Promise<Figures>): Promise<Figures> {
  const server = new Worker(new URL('./empty-server.ts', import.meta.url));
  try {
    const [port] = (await once(server, 'message')) as [number];
    const url = `http://127.0.0.1:${port}/`;
    return (await beside({ ...options, url }, measure, ({ streaming }) => streaming))[0];
  } finally {
    await server.terminate();
  }
}

/** What a load reaches without the victim, in requests per second. */
async function rateAlone(options: CallerOptions): Promise<number> {
  const streaming = async () => {
    const from = performance.now();
    await sleep(500 * SECONDS);
    return { from, to: performance.now() };
  };
  const [, rate] = await beside(options, streaming, (window) => window);
  return rate;
}

/** The medians of rounds that have the same figures in the same order. */
function medians(rounds: readonly (readonly Measurement[])[]): Measurement[] {
  const [first = []] = rounds;
  return first.map((one, at) => ({ ...one, value: median(rounds.map((round) => round[at]!.value)) }));
}

/**
 * Returns what measures a load: the victim's figures beside it as ratios to alone, and the share that the
 * load kept.
 */
async function startRounds(measure: () => Promise<Figures>) {
  let before = await measure();
  return async (name: string, options: CallerOptions, computes: boolean): Promise<Measurement[]> => {
    const loadAlone = computes ? await rateAlone(options) : 0;
    const [loaded, rate] = await beside(options, measure, ({ streaming }) => streaming);
    const after = await measure();
    const alone = between(before, after);
    before = after;
    const share = loaded.tokensPerSecond / alone.tokensPerSecond;
    const measurements: Measurement[] = [
      { figure: `${name}: tokens/s`, value: share, atLeast: computes ? 0.45 : 0.9 },
      { figure: `${name}: first token p50`, value: loaded.first.p50 / alone.first.p50, atMost: 2 },
      { figure: `${name}: first token p99`, value: loaded.first.p99 / alone.first.p99, atMost: 4 },
      { figure: `${name}: plain request p50`, value: loaded.plainMs / alone.plainMs },
    ];
    if (computes) {
      const both = share + rate / loadAlone;
      measurements.push({ figure: `${name}: both tenants, parts of alone`, value: both, atLeast: 0.95 });
    } else {
      const { tokensPerSecond } = await besideEmptyServer(options, measure);
      const value = tokensPerSecond / alone.tokensPerSecond;
      measurements.push({ figure: `${name}: tokens/s beside the same callers of an empty server`, value });
    }
    return measurements;
  };
}

export const neighbours: Scenario = {
  name: 'neighbours',
  summary:
    'Streams and small requests of a tenant beside each kind of load by another one, as ratios to alone.',
  async run() {
    const system = await startSystem();
    const [quiet, loud] = [await newTenant(system, 'quiet'), await newTenant(system, 'loud')];
    const target = openAiTarget('victim', { baseUrl: `${system.url}/v1`, model: 'default', apiKey: quiet });
    const plain = () => {
      const body = { model: 'default', prompt: SMALL.prompt, max_tokens: SMALL.maxTokens };
      return post(`${system.url}/v1/completions`, quiet, body, 60_000);
    };
    const measure = () => victim(target, plain);
    try {
      await measure();
      const measureLoad = await startRounds(measure);
      const rounds: Measurement[][] = [];
      while (rounds.length < ROUNDS) {
        const round: Measurement[] = [];
        for (const [name, { path, body, hasKey = true, computes = true, ...load }] of Object.entries(LOADS)) {
          const key = hasKey ? loud : 'none';
          const options = { ...load, url: `${system.url}${path}`, key, body: JSON.stringify(body) };
          round.push(...(await measureLoad(name, options, computes)));
        }
        rounds.push(round);
      }
      return medians(rounds);
    } finally {
      await target.close();
      await system.stop();
    }
  },
};
