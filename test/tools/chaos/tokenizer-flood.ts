import { Worker } from 'node:worker_threads';
import { startSystem } from '../../support/system.ts';
import { percentiles } from '../bench/statistics.ts';
import { openAiTarget, type Target } from '../bench/target.ts';
import type { CallerOptions } from './caller-thread.ts';
import { type Answer, type Measurement, newTenant, type Scenario } from './scenario.ts';

const CALLERS = 20;
/** The phases alternate, so that other load of the machine meets all of them. */
const ROUNDS = 5;
const SECONDS = 3;
/** Four contexts of the built-in model: the largest request that is served. */
const MAX_IDS = 8192;
/** Words of about one token each. */
const TEXT = 'the cat sat on a mat and then it ran ';

const PHASES = {
  alone: null,
  '/detokenize': { tokens: Array.from({ length: MAX_IDS }, (_, at) => 300 + (at % 3000)) },
  '/tokenize': { prompt: TEXT.repeat(600), return_token_strs: true },
} as const;

/** Returns the gaps between the events of one stream after the other, in milliseconds. */
async function gapsOfStreams(target: Target): Promise<number[]> {
  const until = performance.now() + 1000 * SECONDS;
  const gaps: number[] = [];
  while (performance.now() < until) {
    const { events, status, error } = await target.run({ prompt: 'Once upon a time', maxTokens: 250 });
    if (status !== 200 || error !== null) throw new Error(`the stream failed: ${status} ${error}`);
    for (let at = 1; at < events.length; at++) gaps.push(events[at]! - events[at - 1]!);
  }
  return gaps;
}

/** Runs `measure` beside callers that repeat a request. Returns its result and the number of answers. */
async function beside<T>(options: CallerOptions, measure: () => Promise<T>): Promise<[T, number]> {
  const thread = new Worker(new URL('./caller-thread.ts', import.meta.url), { workerData: options });
  let served = 0;
  thread.on('message', ({ status }: Answer) => {
    if (status === 200) served++;
  });
  try {
    return [await measure(), served];
  } finally {
    await thread.terminate();
  }
}

export const tokenizerFlood: Scenario = {
  name: 'tokenizer-flood',
  summary: `${CALLERS} parallel callers of /detokenize, then of /tokenize, beside the stream of another tenant.`,
  async run() {
    const system = await startSystem();
    const baseUrl = `${system.url}/v1`;
    const target = openAiTarget('stream', {
      baseUrl,
      model: 'default',
      apiKey: await newTenant(system, 'quiet'),
    });
    const key = await newTenant(system, 'flood');
    const gaps = new Map<string, number[]>();
    const answers = new Map<string, number>();
    try {
      await gapsOfStreams(target);
      for (let round = 0; round < ROUNDS; round++) {
        for (const [phase, body] of Object.entries(PHASES)) {
          const options = { callers: CALLERS, url: `${system.url}${phase}`, key, body: JSON.stringify(body) };
          const measure = () => gapsOfStreams(target);
          const [more, served] = body === null ? [await measure(), 0] : await beside(options, measure);
          gaps.set(phase, [...(gaps.get(phase) ?? []), ...more]);
          answers.set(phase, (answers.get(phase) ?? 0) + served);
        }
      }
    } finally {
      await target.close();
      await system.stop();
    }
    const p99 = (phase: string) => percentiles(gaps.get(phase) ?? []).p99;
    return Object.keys(PHASES).flatMap((phase): Measurement[] => {
      if (phase === 'alone') return [{ figure: 'gap p99 alone, ms', value: p99(phase) }];
      return [
        { figure: `gap p99 beside ${phase}, ms`, value: p99(phase), atMost: 1.5 * p99('alone') },
        { figure: `answers of ${phase} per second`, value: (answers.get(phase) ?? 0) / SECONDS / ROUNDS },
      ];
    });
  },
};
